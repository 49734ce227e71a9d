import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { tools } from '@/api/actions';
import { keys } from '@/api/keys';
import { toolListQuery, toolRef, type ToolRow } from '@/api/queries';
import { useT } from '@/i18n';
import { notify, useAction } from '@/parts/feedback';

/** All tools. The first page shows at once, the others load after it. */
export function useAllTools() {
  const query = useInfiniteQuery(toolListQuery);
  const { hasNextPage, isFetchingNextPage, fetchNextPage } = query;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  }, [hasNextPage, isFetchingNextPage, fetchNextPage]);
  const rows = useMemo(() => query.data?.pages.flatMap((page) => page.tools) ?? [], [query.data]);
  return { rows, total: query.data?.pages[0]?.total, error: query.error, isLoading: query.isPending, refetch: query.refetch };
}

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
