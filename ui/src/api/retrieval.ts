/** Retrieval pipelines and their documents. */
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { HEADERS, request } from './client';
import { ApiError } from './error';
import type { DocumentPage, IngestReport, NewDocuments, Pipeline, PipelineBody, RetrievalQuery, RetrievalResult } from './retrieval-types';
import { lifeCycle, type BrokenFile, type ResourceKind } from './resources';
import type { ErrorBody } from './types';

export const pipelineKeys = {
  all: ['pipelines'] as const,
  one: (ref: string) => ['pipelines', 'one', ref] as const,
};

export const PIPELINES: ResourceKind = { path: 'pipelines', page: '/retrieval', ...pipelineKeys };

const path = (ref: string, rest = '') => `/api/pipelines/${encodeURIComponent(ref)}${rest}`;
/** In case that the events of another node are missing. */
const FALLBACK_MS = 10_000;

const pipelinePage = {
  queryKey: ['pipelines', 'list'],
  queryFn: ({ signal }: { signal: AbortSignal }) => request<{ pipelines: Pipeline[]; broken_files: BrokenFile[] }>('/api/pipelines?page_size=500', { signal }),
  retry: false,
} as const;

export const pipelinesQuery = queryOptions({ ...pipelinePage, select: (page) => page.pipelines });

/** Files with errors. */
export const brokenPipelineFilesQuery = queryOptions({ ...pipelinePage, select: (page) => page.broken_files });

export const pipelineQuery = (ref: string) => queryOptions({ queryKey: pipelineKeys.one(ref), queryFn: ({ signal }) => request<Pipeline>(path(ref), { signal }), retry: false });

/** How far the documents are. */
export const ingestQuery = (ref: string) =>
  queryOptions({
    queryKey: [...pipelineKeys.one(ref), 'ingest'],
    queryFn: ({ signal }) => request<IngestReport>(path(ref, '/ingests?page_size=1'), { signal }),
    refetchInterval: (query) => (query.state.data === undefined || query.state.data.state === 'done' ? false : FALLBACK_MS),
    retry: false,
  });

/** The documents by name, page after page. */
export const documentsQuery = (ref: string) =>
  infiniteQueryOptions({
    queryKey: [...pipelineKeys.one(ref), 'documents'],
    queryFn: ({ pageParam, signal }) => request<DocumentPage>(path(ref, `/documents?${new URLSearchParams({ page_size: '200', ...(pageParam === null ? {} : { page_token: pageParam }) })}`), { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next_page_token,
    retry: false,
  });

/** Sends one file as it is and reports how much of it has been sent. `fetch` cannot tell. */
function sendFile(ref: string, name: string, file: File, onProgress: (share: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const upload = new XMLHttpRequest();
    upload.open('POST', path(ref, `/documents?${new URLSearchParams({ name })}`));
    for (const [header, value] of Object.entries(HEADERS)) upload.setRequestHeader(header, value);
    upload.setRequestHeader('Content-Type', file.type || 'application/octet-stream');
    upload.upload.addEventListener('progress', (event) => { if (event.lengthComputable) onProgress(event.loaded / Math.max(1, event.total)); });
    upload.addEventListener('error', () => reject(new ApiError(0, undefined, 'The server cannot be reached.')));
    upload.addEventListener('load', () => {
      if (upload.status < 400) return resolve();
      let body: Partial<ErrorBody> | undefined;
      try {
        body = JSON.parse(upload.responseText) as Partial<ErrorBody>;
      } catch {
        body = undefined;
      }
      return reject(new ApiError(upload.status, body, `The server answered ${upload.status}.`));
    });
    upload.send(file);
  });
}

export const pipelines = {
  create: (fields: PipelineBody) => request<Pipeline>('/api/pipelines', { method: 'POST', json: fields }),
  update: (ref: string, fields: PipelineBody) => request<Pipeline>(path(ref), { method: 'PUT', json: fields }),
  ...lifeCycle<Pipeline>('pipelines'),
  reingest: (ref: string) => request<unknown>(path(ref, '/reingest'), { method: 'POST' }),
  sendFile,
  add: (ref: string, documents: NewDocuments) => request<unknown>(path(ref, '/documents'), { method: 'POST', json: documents }),
  removeDocument: (ref: string, document: string) => request<unknown>(path(ref, `/documents/${encodeURIComponent(document)}`), { method: 'DELETE' }),
  query: async (ref: string, question: RetrievalQuery) => (await request<RetrievalResult>(path(ref, '/query'), { method: 'POST', json: question })).hits,
};
