/** Runs of agents: reads, the stream of one, cancellation. */
import { infiniteQueryOptions, keepPreviousData, queryOptions, type QueryClient } from '@tanstack/react-query';
import { request, stream } from './client';
import { isFinal, type Run, type RunEvent, type RunPage, type RunStep } from './run-types';
import { readEvents } from './sse';

export const runKeys = {
  all: ['runs'] as const,
  one: (id: string) => ['runs', 'one', id] as const,
};

const address = (id: string) => `/api/runs/${encodeURIComponent(id)}`;
const LIVE_MS = 1_000;
/** Events tell the status of a run; what it has used so far is read again. */
const USAGE_MS = 5_000;
/** In case that the events of another node are missing. */
const FALLBACK_MS = 15_000;

export interface RunFilters {
  agent?: string;
  status?: string;
  chat_id?: string;
  parent_id?: string;
}

function getRuns(filters: RunFilters, pageSize: number, token: string | null, signal?: AbortSignal): Promise<RunPage> {
  const query = new URLSearchParams({ ...filters, page_size: String(pageSize), ...(token === null ? {} : { page_token: token }) } as Record<string, string>);
  return request<RunPage>(`/api/runs?${query}`, signal ? { signal } : {});
}

export const runListQuery = (filters: RunFilters, pageSize = 100) =>
  infiniteQueryOptions({
    queryKey: [...runKeys.all, 'list', filters, pageSize],
    queryFn: ({ pageParam, signal }) => getRuns(filters, pageSize, pageParam, signal),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_page_token,
    placeholderData: keepPreviousData,
    refetchInterval: (query) => (query.state.data?.pages.some((page) => page.runs.some((run) => !isFinal(run.status))) ? FALLBACK_MS : false),
  });

const RELATED_PAGES = 10;

/** The runs of a chat, or inside another run: the latest thousand. */
export const relatedRunsQuery = (filters: RunFilters) =>
  queryOptions({
    queryKey: [...runKeys.all, 'related', filters],
    queryFn: async ({ signal }) => {
      const all: Run[] = [];
      let token: string | null = null;
      for (let count = 0; count < RELATED_PAGES; count += 1) {
        const page: RunPage = await getRuns(filters, 100, token, signal);
        all.push(...page.runs);
        token = page.next_page_token;
        if (token === null) break;
      }
      return all;
    },
    retry: false,
  });

/** A run; one that has not ended is read again. */
export const runQuery = (id: string) =>
  queryOptions({
    queryKey: runKeys.one(id),
    queryFn: ({ signal }) => request<Run>(address(id), { signal }),
    refetchInterval: (query) => (query.state.data && !isFinal(query.state.data.status) ? USAGE_MS : false),
    retry: false,
  });

const PAGE = 100;

/** The steps of a run, which are no events. They never change, so reading them again reads those that are new. */
export const stepsQuery = (id: string, queries: QueryClient, isLive: boolean) => {
  const queryKey = [...runKeys.one(id), 'steps'];
  return queryOptions({
    queryKey,
    queryFn: async ({ signal }) => {
      const steps = [...(queries.getQueryData<RunStep[]>(queryKey) ?? [])];
      for (;;) {
        const page = (await request<{ steps: RunStep[] }>(`${address(id)}/steps?after=${steps.at(-1)?.number ?? 0}`, { signal })).steps;
        steps.push(...page);
        if (page.length < PAGE) return steps;
      }
    },
    refetchInterval: isLive ? LIVE_MS : false,
    structuralSharing: false,
    retry: false,
  });
};

export const runs = {
  cancel: (id: string) => request<unknown>(`${address(id)}/cancel`, { method: 'POST' }),
  /** The events of a run: those of its stored steps, then as they happen, until it ends or waits. */
  follow: async (id: string, signal: AbortSignal, onEvent: (event: RunEvent) => void) => {
    const response = await stream(`${address(id)}/events`, { signal });
    await readEvents(response, ({ data }) => onEvent(JSON.parse(data) as RunEvent));
  },
};
