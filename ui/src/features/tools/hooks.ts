import { useQueryClient } from '@tanstack/react-query';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { toolListQuery, toolRef, type ToolRow } from '@/api/queries';
import { useT } from '@/i18n';
import { isInUse } from '@/parts/delete-resource';
import { notify, notifyError, useAction, useAsk } from '@/parts/feedback';
import { visibleText } from '@/parts/format';

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

type Removable = Pick<ToolRow, 'id' | 'name' | 'bundle' | 'version'>;

/** Deletes tools one after the other and offers undo, also for the tools deleted before a failure. Asks again before it deletes tools that are in use. */
export function useRemove(onRemoved: () => void) {
  const t = useT();
  const ask = useAsk();
  const undo = useAction(async (removed: Removable[]) => { for (const row of removed) await tools.undelete(row.id ?? toolRef(row)); }, {
    invalidates: [keys.tools], done: (_, removed) => notify(t('tools.revivedNotice', { n: removed.length })),
  });
  const remove = async (row: Removable) => {
    try {
      await tools.remove(toolRef(row));
    } catch (error) {
      if (!isInUse(error)) throw error;
      const users = (error.details['used_by'] as string[]).join(', ');
      if (!await ask({ title: t('resources.inUse', { name: visibleText(row.name) }), body: visibleText(users), confirm: t('resources.deleteAnyway'), danger: true })) return false;
      await tools.remove(toolRef(row), true);
    }
    return true;
  };
  return useAction(async (rows: Removable[]) => {
    const removed: Removable[] = [];
    let failure: unknown;
    for (const row of rows) {
      try {
        if (await remove(row)) removed.push(row);
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
        const name = removed.length === 1 ? removed[0]?.name : undefined;
        notify(name === undefined ? t('tools.deletedNotice', { n: removed.length }) : t('tools.deletedOne', { name }), { label: t('common.undo'), run: () => undo.mutate(removed) });
      }
      if (failure !== undefined) notifyError(failure, t('common.failed'));
    },
  });
}
