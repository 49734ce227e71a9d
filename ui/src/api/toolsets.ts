/** Toolsets: packages of tools and MCP servers. */
import { queryOptions } from '@tanstack/react-query';
import { tools } from './actions';
import { client, data, upload } from './client';
import { ApiError } from './error';
import type { InstalledReport, JsonObject, Problem, RendererSetting, ToolsetImport, ToolsetPreview } from './types';

export const toolsetKeys = { all: ['toolsets'] as const };

const id = (value: string) => ({ path: { id: value } });

export const toolsetsQuery = queryOptions({
  queryKey: ['toolsets', 'list'],
  queryFn: async () => (await data(client.GET('/toolsets', { params: { query: { page_size: 500 } } }))).toolsets,
  retry: false,
});

/** A toolset with what its package contains. */
export const toolsetQuery = (toolset: string) =>
  queryOptions({ queryKey: ['toolsets', 'one', toolset], queryFn: () => data(client.GET('/toolsets/{id}', { params: id(toolset) })), retry: false });

export type ToolsetSource = { file: Blob } | { url: string };

function send(source: ToolsetSource, query: { dry_run?: boolean; allow_unsandboxed?: boolean }): Promise<ToolsetImport> {
  if ('url' in source) return data(client.POST('/toolsets', { params: { query }, body: { url: source.url } }));
  const parameters = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return upload<ToolsetImport>(`/api/toolsets?${parameters}`, { method: 'POST', body: source.file, headers: { 'Content-Type': 'application/zip' } });
}

export const toolsets = {
  inspect: async (source: ToolsetSource) => (await send(source, { dry_run: true })) as ToolsetPreview,
  /** `allowUnsandboxed` lets tools that ask for it run without isolation. */
  install: async (source: ToolsetSource, allowUnsandboxed: boolean) => ((await send(source, { allow_unsandboxed: allowUnsandboxed })) as InstalledReport).toolset,
  enable: (toolset: string, enabled: boolean) => data(client.POST('/toolsets/{id}/enable', { params: id(toolset), body: { enabled } })),
  update: async (toolset: string) => (await data(client.POST('/toolsets/{id}/update', { params: id(toolset) }))).toolset,
  rollback: async (toolset: string) => (await data(client.POST('/toolsets/{id}/rollback', { params: id(toolset) }))).toolset,
  remove: (toolset: string) => data(client.DELETE('/toolsets/{id}', { params: id(toolset) })),
  exportUrl: (toolset: string) => `/api/toolsets/${encodeURIComponent(toolset)}/export`,
  /** Sets how the results of a tool are shown: a new revision of its definition, published. An update keeps it. */
  setRenderers: async (ref: string, renderers: RendererSetting[]) => {
    const { text } = await data(client.GET('/tools/{ref}/source', { params: { path: { ref }, query: { format: 'json' } } }));
    await tools.update(ref, JSON.stringify({ ...(JSON.parse(text) as JsonObject), renderers }, null, 2), 'json');
    return tools.publish(ref);
  },
};

/** The problems that a rejected package has, all at once. */
export function packageProblems(error: unknown): Problem[] {
  const list = error instanceof ApiError ? error.details['problems'] : undefined;
  return Array.isArray(list) ? (list as Problem[]) : [];
}
