/** How results of calls are shown. */
import { queryOptions } from '@tanstack/react-query';
import { body, client, data } from './client';

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

/** The result of a call, or the part that a JSON pointer refers to. It never changes. */
export const resultQuery = (call: string, pointer: string) =>
  queryOptions({
    queryKey: ['results', call, pointer],
    queryFn: () => body(client.GET('/calls/{id}/result', { params: { path: { id: call }, query: { pointer } } })),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
    structuralSharing: false,
    refetchOnWindowFocus: false,
    retry: false,
  });

/** The address at which a browser saves the result of a call. */
export const resultDownload = (call: string): string => `/api/calls/${encodeURIComponent(call)}/result?download=true`;
