/**
 * Toolsets, workspaces and render plans: the shapes and requests of routes that `openapi.json` does not have yet. Everything
 * that depends on them imports from here, so that the generated types take their place in one file.
 */
import { queryOptions } from '@tanstack/react-query';
import { download, raw, request, upload } from './client';
import { ApiError } from './error';
import type { Call, Json, JsonObject, Problem, Tool } from './types';

// --- Render plans

export const RENDERERS = ['code', 'document', 'html', 'frame', 'table', 'chart', 'image', 'diff', 'terminal', 'json'] as const;
export type RendererName = (typeof RENDERERS)[number];

export interface RenderPlan {
  renderer: string;
  /** Interpolated: no `$args` or `$return` is left. */
  config: JsonObject;
  /** Why the plan could not be made. */
  error?: string | null;
}

export type FileChange = 'added' | 'modified' | 'removed';

export interface ChangedFile {
  path: string;
  change: FileChange;
}

/** What a call record has besides, where the call had a workspace. */
export interface CallRendering {
  render_plan?: RenderPlan | null;
  /** The name of a workspace, or `chat~ID`. */
  workspace?: string | null;
  pre_manifest?: string | null;
  post_manifest?: string | null;
  changed_files?: ChangedFile[];
}

export const rendering = (call: Call): CallRendering => call as CallRendering;

/** A signed, short-lived address of the document that an `html` or `frame` renderer shows. */
export const renderUrlQuery = (call: string) =>
  queryOptions({
    // Not below `calls`: an event of another call must not load the document again.
    queryKey: ['renders', call],
    queryFn: () => request<{ url: string; expires_at: string }>(`/api/calls/${encodeURIComponent(call)}/render`),
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 30_000,
    refetchOnWindowFocus: false,
    retry: false,
  });

// --- Workspaces

export interface Workspace {
  name: string;
  /** Set for the workspace of a chat. */
  chat_id?: string | null;
  title?: string | null;
  files: number;
  bytes: number;
  manifest_id: string | null;
  modified_at: string;
}

export interface FileEntry {
  path: string;
  size: number;
  hash: string;
  executable?: boolean;
  /** Where a symbolic link points. */
  target?: string | null;
}

export interface FileList {
  files: FileEntry[];
  manifest_id: string | null;
  total: number;
}

export interface Manifest {
  id: string;
  parent_id: string | null;
  created_at: string;
  /** `user_upload`, `tool_run`, `branch`, `edit`, `restore`. */
  source: string;
  /** A call or a message. */
  source_ref: string | null;
  files: number;
  bytes: number;
}

export interface WorkspaceChanges {
  call_id: string | null;
  changes: ChangedFile[];
}

const CHAT = 'chat~';

/** The address under which a workspace is found: of a chat, or of its own. */
export function workspacePath(name: string): string {
  return name.startsWith(CHAT) ? `/api/chats/${encodeURIComponent(name.slice(CHAT.length))}/workspace` : `/api/workspaces/${encodeURIComponent(name)}`;
}

export const workspaceName = (workspace: Pick<Workspace, 'name' | 'chat_id'>): string => (workspace.chat_id ? `${CHAT}${workspace.chat_id}` : workspace.name);

const encodePath = (path: string) => path.split('/').map(encodeURIComponent).join('/');
const query = (values: Record<string, string | null | undefined>) => {
  const text = new URLSearchParams(Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1]))).toString();
  return text === '' ? '' : `?${text}`;
};

/** The address of a file: in the current state, or in that of a manifest. */
export function fileUrl(workspace: string, path: string, manifest?: string | null): string {
  return `${workspacePath(workspace)}/files/${encodePath(path)}${query({ manifest })}`;
}

export const archiveUrl = (workspace: string, manifest?: string | null) => `${workspacePath(workspace)}/archive${query({ manifest })}`;

export const workspaceKeys = {
  all: ['workspaces'] as const,
  one: (workspace: string) => ['workspaces', 'one', workspace] as const,
};

export const workspacesQuery = queryOptions({
  queryKey: ['workspaces', 'list'],
  queryFn: async () => (await request<{ workspaces: Workspace[]; total: number }>('/api/workspaces?page_size=500')).workspaces,
  retry: false,
});

export const filesQuery = (workspace: string, manifest?: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'files', manifest ?? null],
    queryFn: () => request<FileList>(`${workspacePath(workspace)}/files${query({ manifest })}`),
    retry: false,
  });

/** The content of a file, and the mark by which the server knows whether it changed since. */
export interface FileContent {
  bytes: Uint8Array;
  etag: string | null;
  type: string;
}

export const fileQuery = (workspace: string, path: string, manifest?: string | null) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'file', path, manifest ?? null],
    queryFn: ({ signal }): Promise<FileContent> => download(fileUrl(workspace, path, manifest), signal),
    retry: false,
    structuralSharing: false,
  });

export const manifestsQuery = (workspace: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'manifests'],
    queryFn: async () => (await request<{ manifests: Manifest[] }>(`${workspacePath(workspace)}/manifests?page_size=200`)).manifests,
    retry: false,
  });

export const workspaceDiffQuery = (workspace: string, from: string | null, to: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'diff', from, to],
    queryFn: async () => (await request<{ changes: ChangedFile[] }>(`${workspacePath(workspace)}/diff${query({ from, to })}`)).changes,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  });

/** What the last call changed. */
export const changesQuery = (workspace: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'changes'],
    queryFn: () => request<WorkspaceChanges>(`${workspacePath(workspace)}/changes`),
    retry: false,
  });

export const workspaces = {
  /** Writes a file. With `etag`, only if nobody changed it since. */
  put: (workspace: string, path: string, content: Blob | string, etag?: string | null) =>
    upload<unknown>(fileUrl(workspace, path), { method: 'PUT', body: content, headers: etag ? { 'If-Match': etag } : {} }),
  remove: (workspace: string, path: string) => request<unknown>(fileUrl(workspace, path), { method: 'DELETE' }),
  restore: (workspace: string, manifest: string) => request<unknown>(`${workspacePath(workspace)}/restore`, { method: 'POST', json: { manifest_id: manifest } }),
};

// --- Toolsets

export interface Signature {
  state: 'unsigned' | 'valid' | 'unknown_key' | 'invalid';
  key?: string | null;
}

export interface ToolsetServer {
  id: string;
  command?: string;
  args?: string[];
  url?: string;
  env?: Record<string, string>;
  /** Of an installed server: `connected`, `error`, … */
  phase?: string;
  error?: string | null;
}

export interface RendererSetting {
  renderer: string;
  priority: number;
  config: JsonObject;
  /** Whether it was set in this installation, and not by the package. */
  override?: boolean;
}

export interface ToolsetTool {
  name: string;
  /** `bundle:name@version`, once installed. */
  tool?: string;
  description: string;
  enabled: boolean;
  requires_confirmation: boolean;
  sandbox: boolean;
  network: boolean;
  renderers: RendererSetting[];
}

export interface ToolsetContent {
  id: string;
  name: string;
  version: string;
  description: string;
  tools: ToolsetTool[];
  mcp_servers: ToolsetServer[];
  dependencies: string[];
  warnings: Problem[];
  signature: Signature;
}

export interface Toolset extends ToolsetContent {
  enabled: boolean;
  /** Where `update` reads it again; missing for an uploaded file. */
  source_ref: string | null;
  /** The version that a roll back restores. */
  previous_version: string | null;
  installed_at: string;
  modified_at: string;
}

/** What an import would do. */
export interface ToolsetPreview extends ToolsetContent {
  action: 'install' | 'update';
  installed_version: string | null;
  removed_tools: string[];
  errors: Problem[];
  files: number;
  bytes: number;
}

export const toolsetKeys = { all: ['toolsets'] as const };

export const toolsetsQuery = queryOptions({
  queryKey: ['toolsets', 'list'],
  queryFn: async () => (await request<{ toolsets: Toolset[] }>('/api/toolsets?page_size=500')).toolsets,
  retry: false,
});

/** Whether the server knows these routes: the navigation shows their pages only then. */
export const servesToolsetsQuery = queryOptions({
  queryKey: ['toolsets', 'served'],
  queryFn: async () => (await raw('/api/toolsets?page_size=1')).status < 400,
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
  retry: false,
});

export type ToolsetSource = { file: Blob } | { url: string };

function send<T>(source: ToolsetSource, dryRun: boolean): Promise<T> {
  const path = `/api/toolsets${dryRun ? '?dry_run=true' : ''}`;
  return 'file' in source ? upload<T>(path, { method: 'POST', body: source.file, headers: { 'Content-Type': 'application/zip' } }) : request<T>(path, { method: 'POST', json: { url: source.url } });
}

const toolset = (id: string) => `/api/toolsets/${encodeURIComponent(id)}`;

export const toolsets = {
  inspect: (source: ToolsetSource) => send<ToolsetPreview>(source, true),
  install: (source: ToolsetSource) => send<Toolset>(source, false),
  enable: (id: string, enabled: boolean) => request<Toolset>(`${toolset(id)}/enable`, { method: 'POST', json: { enabled } }),
  update: (id: string) => request<Toolset>(`${toolset(id)}/update`, { method: 'POST' }),
  rollback: (id: string) => request<Toolset>(`${toolset(id)}/rollback`, { method: 'POST' }),
  remove: (id: string) => request<unknown>(toolset(id), { method: 'DELETE' }),
  exportUrl: (id: string) => `${toolset(id)}/export`,
  /** Replaces the renderers that this installation sets for a tool. */
  setRenderers: (tool: string, renderers: Omit<RendererSetting, 'override'>[]) =>
    request<Tool>(`/api/tools/${encodeURIComponent(tool)}/renderers`, { method: 'PUT', json: { renderers } }),
};

/** The problems that a rejected package has, all at once. */
export function packageProblems(error: unknown): Problem[] {
  const list: Json | unknown = error instanceof ApiError ? error.details['problems'] : undefined;
  return Array.isArray(list) ? (list as Problem[]) : [];
}
