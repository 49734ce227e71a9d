import { useQueryClient } from '@tanstack/react-query';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { sourceQuery, toolListQuery, toolRef, type ToolRow } from '@/api/queries';
import { useT } from '@/i18n';
import type { SourceForm } from '@/api/types';
import { notify, notifyError, useAction } from '@/parts/feedback';

/** Enables or disables at once; undone by the same. */
export function useEnable() {
  const t = useT();
  const queries = useQueryClient();
  const patch = (refs: Set<string>, enabled: boolean) => {
    queries.setQueryData(toolListQuery.queryKey, (data) => data && {
      ...data,
      pages: data.pages.map((page) => ({ ...page, tools: page.tools.map((row) => (refs.has(toolRef(row)) ? { ...row, enabled } : row)) })),
    });
  };
  const action = useAction(async ({ rows, enabled }: { rows: Pick<ToolRow, 'name' | 'bundle' | 'version'>[]; enabled: boolean }) => {
    patch(new Set(rows.map(toolRef)), enabled);
    for (const row of rows) await tools.enable(toolRef(row), enabled);
  }, {
    invalidates: [keys.tools],
    done: (_, { rows, enabled }) => notify(t(enabled ? 'tools.enabledNotice' : 'tools.disabledNotice', { n: rows.length, name: rows[0]?.name ?? '' }),
      { label: t('common.undo'), run: () => action.mutate({ rows, enabled: !enabled }) }),
  });
  return action;
}

type Removable = Pick<ToolRow, 'name' | 'bundle' | 'version' | 'status' | 'enabled'>;

interface Removed {
  row: Removable;
  text: string;
  form: SourceForm;
}

/** Creates a deleted tool again, in the state that it had. */
async function revive({ row, text, form }: Removed) {
  const created = toolRef(await tools.create(text, form, row.bundle));
  if (row.status === 'published') await tools.publish(created);
  if (!row.enabled) await tools.enable(created, false);
}

/** Deletes tools, one after the other, and offers to undo it: also for those that were deleted before one failed. */
export function useRemove(onRemoved: () => void) {
  const t = useT();
  const queries = useQueryClient();
  const undo = useAction(async (removed: Removed[]) => { for (const each of removed) await revive(each); }, {
    invalidates: [keys.tools], done: (_, removed) => notify(t('tools.revivedNotice', { n: removed.length })),
  });
  return useAction(async (rows: Removable[]) => {
    const removed: Removed[] = [];
    let failure: unknown;
    for (const row of rows) {
      try {
        const source = await queries.fetchQuery({ ...sourceQuery(toolRef(row)), staleTime: 0 });
        await tools.remove(toolRef(row));
        removed.push({ row, text: source.text, form: source.form });
      } catch (error) {
        failure = error;
        break;
      }
    }
    return { removed, failure };
  }, {
    invalidates: [keys.tools],
    done: ({ removed, failure }) => {
      if (removed.length > 0) {
        onRemoved();
        const name = removed.length === 1 ? removed[0]?.row.name : undefined;
        notify(name === undefined ? t('tools.deletedNotice', { n: removed.length }) : t('tools.deletedOne', { name }), { label: t('common.undo'), run: () => undo.mutate(removed) });
      }
      if (failure !== undefined) notifyError(failure, t('common.failed'));
    },
  });
}
