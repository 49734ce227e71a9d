import { useInfiniteQuery } from '@tanstack/react-query';
import { useEffect, useMemo } from 'react';
import { toolListQuery } from '@/api/queries';

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
