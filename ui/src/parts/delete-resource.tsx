/** Deletes an agent, a pipeline or an artifact: confirms, lists its users, offers to force it, and offers undo. */
import { useQueryClient } from '@tanstack/react-query';
import { ApiError } from '@/api/error';
import { useT } from '@/i18n';
import { notify, notifyError, useAction, useAsk } from './feedback';
import { visibleText } from './format';

/** The requests of a kind. */
interface Requests {
  remove: (ref: string, force: boolean) => Promise<unknown>;
  undelete: (ref: string) => Promise<unknown>;
}

interface Target {
  id: string;
  name: string;
  /** The consequences, for the confirmation. */
  body: string;
  /** The text to type as confirmation. */
  typed?: string | undefined;
}

interface Options {
  invalidates: readonly (readonly unknown[])[];
  /** The cache key of the deleted object. */
  key: readonly unknown[];
  onDeleted: () => void;
}

/** Whether a deletion was rejected because the object is in use. */
export const isInUse = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 409 && Array.isArray(error.details['used_by']);

/** Returns the action that confirms and deletes. */
export function useDelete(requests: Requests, { id, name, body, typed }: Target, { invalidates, key, onDeleted }: Options): () => Promise<void> {
  const t = useT();
  const ask = useAsk();
  const queries = useQueryClient();
  const undo = useAction(() => requests.undelete(id), { invalidates, done: () => notify(t('resources.restored', { name })) });
  const remove = useAction((force: boolean) => requests.remove(id, force), {
    invalidates,
    done: () => {
      queries.removeQueries({ queryKey: key });
      onDeleted();
      notify(t('agents.deleted', { name }), { label: t('common.undo'), run: () => undo.mutate(undefined) });
    },
    failed: (error) => {
      if (!isInUse(error)) { notifyError(error, t('common.failed')); return; }
      void ask({ title: t('resources.inUse', { name }), body: visibleText((error.details['used_by'] as string[]).join(', ')), confirm: t('resources.deleteAnyway'), danger: true })
        .then((yes) => { if (yes) remove.mutate(true); });
    },
  });
  return async () => {
    const question = { title: t('tools.deleteTitle', { name }), body: `${body} ${t('resources.deleteBody')}`, confirm: t('common.delete'), danger: true };
    if (await ask(typed === undefined ? question : { ...question, typed })) remove.mutate(false);
  };
}
