/** How results of calls are shown. */
import { queryOptions } from '@tanstack/react-query';
import { client, data } from './client';

/** The renderers that the page has. */
export const RENDERERS = ['code', 'document', 'html', 'frame', 'table', 'chart', 'image', 'diff', 'terminal', 'json'] as const;
export type RendererName = (typeof RENDERERS)[number];

/** A signed, short-lived address of the document that an `html` renderer shows. */
export const renderUrlQuery = (call: string) =>
  queryOptions({
    // Not below `calls`: an event of another call must not load the document again.
    queryKey: ['renders', call],
    queryFn: () => data(client.GET('/calls/{id}/render', { params: { path: { id: call } } })),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
    refetchOnWindowFocus: false,
    retry: false,
  });
