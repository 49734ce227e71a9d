/** Requests that agents, retrieval pipelines and artifacts share; tools use a part of them. */
import { queryOptions } from '@tanstack/react-query';
import { request } from './client';
import type { components } from './schema';

export type ResourceUsage = components['schemas']['ResourceUsage'];
export type BrokenFile = components['schemas']['BrokenFile'];
/** The paths of the kinds. */
export type ResourcePath = 'agents' | 'pipelines' | 'code-artifacts';

/** The fields of every kind of resource. */
export interface Resource {
  id: string;
  slug: string;
  name: string;
  status: string;
  enabled: boolean;
  revision: number;
  published_revision: number | null;
  /** The file that defines it. */
  path?: string | null;
}

/** A kind of resource: its paths and cache keys. */
export interface ResourceKind {
  path: ResourcePath;
  /** The address of its page. */
  page: string;
  all: readonly unknown[];
  one: (ref: string) => readonly unknown[];
}

export const resourcePath = (path: ResourcePath, ref: string, rest = '') => `/api/${path}/${encodeURIComponent(ref)}${rest}`;

/** Reads a resource by its slug or id. */
export const readResource = <T>(path: ResourcePath) => (ref: string, { signal }: { signal: AbortSignal }) => request<T>(resourcePath(path, ref), { signal });

/** The changes that all kinds support. */
export const lifeCycle = <T>(path: ResourcePath) => ({
  enable: (ref: string, enabled: boolean) => request<T>(resourcePath(path, ref), { method: 'PATCH', json: { enabled } }),
  publish: (ref: string) => request<T>(resourcePath(path, ref, '/publish'), { method: 'POST' }),
  deprecate: (ref: string) => request<T>(resourcePath(path, ref, '/deprecate'), { method: 'POST' }),
  restore: (ref: string, n: number) => request<T>(resourcePath(path, ref, `/${path === 'code-artifacts' ? 'versions' : 'revisions'}/${n}/restore`), { method: 'POST' }),
  /** `force` deletes it even if it is in use. */
  remove: (ref: string, force: boolean) => request<unknown>(resourcePath(path, ref, force ? '?force=true' : ''), { method: 'DELETE' }),
  undelete: (ref: string) => request<T>(resourcePath(path, ref, '/undelete'), { method: 'POST' }),
});

export const resourceUsageQuery = (path: ResourcePath, id: string) =>
  queryOptions({
    queryKey: ['resource-usage', path, id],
    queryFn: ({ signal }) => request<ResourceUsage>(resourcePath(path, id, '/usage'), { signal }),
    retry: false,
  });

/** A deleted tool or resource that can be restored. */
export interface Deleted {
  id: string;
  name: string;
  /** The slug, or the bundle and version. */
  reference: string;
  status: string;
  deletedAt: string;
}

interface DeletedPage {
  agents?: DeletedItem[];
  pipelines?: DeletedItem[];
  artifacts?: DeletedItem[];
  tools?: DeletedItem[];
}

interface DeletedItem {
  id: string;
  name: string;
  status: string;
  deleted_at: string;
  slug?: string;
  bundle?: string;
  version?: string;
}

/** The resources of a kind that were deleted in the last 48 hours, last one first. */
export const deletedQuery = (path: ResourcePath | 'tools', all: readonly unknown[]) =>
  queryOptions({
    queryKey: [...all, 'deleted'],
    queryFn: async ({ signal }) => {
      const page = await request<DeletedPage>(`/api/${path}?deleted=true&page_size=500`, { signal });
      const items = page.agents ?? page.pipelines ?? page.artifacts ?? page.tools ?? [];
      const rows = items.map((item): Deleted => ({ id: item.id, name: item.name, reference: item.slug ?? `${item.bundle}:${item.name}@${item.version}`, status: item.status, deletedAt: item.deleted_at }));
      return rows.toSorted((a, b) => b.deletedAt.localeCompare(a.deletedAt));
    },
    retry: false,
  });
