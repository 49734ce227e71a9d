/** Agents: a model with instructions and tools. */
import { queryOptions } from '@tanstack/react-query';
import type { Agent, AgentCheck, AgentPage, AgentRevision, AgentTools, ModelList } from './agent-types';
import { request } from './client';
import { lifeCycle, type ResourceKind } from './resources';
import type { JsonObject } from './types';

export const agentKeys = {
  all: ['agents'] as const,
  one: (ref: string) => ['agents', 'one', ref] as const,
};

export const AGENTS: ResourceKind = { path: 'agents', page: '/agents', ...agentKeys };

const path = (ref: string, rest = '') => `/api/agents/${encodeURIComponent(ref)}${rest}`;

const agentPage = {
  queryKey: ['agents', 'list'],
  queryFn: ({ signal }: { signal: AbortSignal }) => request<AgentPage>('/api/agents?page_size=500', { signal }),
  retry: false,
} as const;

export const agentsQuery = queryOptions({ ...agentPage, select: (page: AgentPage) => page.agents });

/** Files with errors. */
export const brokenAgentFilesQuery = queryOptions({ ...agentPage, select: (page: AgentPage) => page.broken_files });

export const agentQuery = (ref: string) => queryOptions({ queryKey: agentKeys.one(ref), queryFn: ({ signal }) => request<Agent>(path(ref), { signal }), retry: false });

/** The tools that its rules select now. */
export const agentToolsQuery = (ref: string) =>
  queryOptions({ queryKey: [...agentKeys.one(ref), 'tools'], queryFn: ({ signal }) => request<AgentTools>(path(ref, '/tools'), { signal }), retry: false });

/** A revision with its definition. */
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
  ...lifeCycle<Agent>('agents'),
};
