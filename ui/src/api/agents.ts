/** Agents: a model with instructions and tools. */
import { queryOptions } from '@tanstack/react-query';
import type { Agent, AgentCheck, AgentPage, AgentRevision, AgentRevisionPage, AgentTools, ModelList } from './agent-types';
import { request } from './client';
import type { JsonObject } from './types';

export const agentKeys = {
  all: ['agents'] as const,
  one: (ref: string) => ['agents', 'one', ref] as const,
};

const path = (ref: string, rest = '') => `/api/agents/${encodeURIComponent(ref)}${rest}`;

const agentPage = {
  queryKey: ['agents', 'list'],
  queryFn: ({ signal }: { signal: AbortSignal }) => request<AgentPage>('/api/agents?page_size=500', { signal }),
  retry: false,
} as const;

export const agentsQuery = queryOptions({ ...agentPage, select: (page: AgentPage) => page.agents });

/** The files in `agents/` that cannot be used. */
export const brokenAgentFilesQuery = queryOptions({ ...agentPage, select: (page: AgentPage) => page.broken_files });

export const agentQuery = (ref: string) => queryOptions({ queryKey: agentKeys.one(ref), queryFn: ({ signal }) => request<Agent>(path(ref), { signal }), retry: false });

/** The tools that its rules select now. */
export const agentToolsQuery = (ref: string) =>
  queryOptions({ queryKey: [...agentKeys.one(ref), 'tools'], queryFn: ({ signal }) => request<AgentTools>(path(ref, '/tools'), { signal }), retry: false });

export const agentRevisionsQuery = (ref: string) =>
  queryOptions({
    queryKey: [...agentKeys.one(ref), 'revisions'],
    queryFn: async ({ signal }) => (await request<AgentRevisionPage>(path(ref, '/revisions'), { signal })).revisions,
    retry: false,
  });

/** One of them with its definition. */
export const agentRevisionQuery = (ref: string, n: number) =>
  queryOptions({
    queryKey: [...agentKeys.one(ref), 'revision', n], queryFn: ({ signal }) => request<AgentRevision>(path(ref, `/revisions/${n}`), { signal }), staleTime: Number.POSITIVE_INFINITY, retry: false,
  });

/** The models and providers that agents can use. */
export const modelsQuery = queryOptions({
  queryKey: ['models'],
  queryFn: ({ signal }) => request<ModelList>('/api/models', { signal }),
  staleTime: 60_000,
  retry: false,
});

export const agents = {
  create: (definition: JsonObject) => request<Agent>('/api/agents', { method: 'POST', json: definition }),
  /** With `revision`, only if nobody stored another one since. */
  update: (ref: string, definition: JsonObject, revision?: number) =>
    request<Agent>(path(ref), { method: 'PUT', json: definition, headers: revision === undefined ? {} : { 'If-Match': String(revision) } }),
  check: (definition: JsonObject) => request<AgentCheck>('/api/agents/check', { method: 'POST', json: definition }),
  enable: (ref: string, enabled: boolean) => request<Agent>(path(ref), { method: 'PATCH', json: { enabled } }),
  publish: (ref: string) => request<Agent>(path(ref, '/publish'), { method: 'POST' }),
  deprecate: (ref: string) => request<Agent>(path(ref, '/deprecate'), { method: 'POST' }),
  restore: (ref: string, n: number) => request<Agent>(path(ref, `/revisions/${n}/restore`), { method: 'POST' }),
  remove: (ref: string) => request<unknown>(path(ref), { method: 'DELETE' }),
};
