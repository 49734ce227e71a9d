/**
 * Toolsets, workspaces and render plans: the shapes and requests of routes that `openapi.json` does not have yet. Everything
 * that depends on them imports from here, so that the generated types take their place in one file.
 */
import { queryOptions } from '@tanstack/react-query';
import { tools } from './actions';
import { download, entityTag, raw, request, upload } from './client';
import { ApiError } from './error';
import type { Call, Json, JsonObject, Problem } from './types';

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

/** What a call did in its workspace. */
interface WorkspaceUse {
  name: string;
  pre_manifest?: string;
  post_manifest?: string;
  /** The first 100. */
  changes: ChangedFile[];
  changed: number;
  error?: string;
}

/** What a call record has besides. */
export interface CallRendering {
  render_plan?: RenderPlan;
  /** The name of a workspace; `chat:ID` for that of a chat. */
  workspace?: string;
  workspace_use?: WorkspaceUse;
}

export const rendering = (call: Call): CallRendering => call as CallRendering;

/** A signed, short-lived address of the document that an `html` renderer shows. */
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
  manifest_id: string | null;
  files: number;
  bytes: number;
  created_at: string;
  modified_at: string;
}

export interface FileEntry {
  path: string;
  kind: 'file' | 'folder' | 'link';
  size: number | null;
  executable: boolean;
  /** Where a link points. */
  target?: string;
  hash?: string;
}

export interface Manifest {
  id: string;
  parent_id: string | null;
  files: number;
  bytes: number;
  source: 'tool_run' | 'edit' | 'user_upload' | 'restore' | 'branch';
  /** A call, a message, or a manifest. */
  source_ref: string | null;
  created_by: string;
  created_at: string;
}

export interface FileList {
  manifest: Manifest | null;
  files: FileEntry[];
  total: number;
}

const CHAT = 'chat:';

export const isChat = (workspace: string): boolean => workspace.startsWith(CHAT);

/** The address under which a workspace is found: of a chat, or of its own. */
export function workspacePath(name: string): string {
  return isChat(name) ? `/api/chats/${encodeURIComponent(name.slice(CHAT.length))}/workspace` : `/api/workspaces/${encodeURIComponent(name)}`;
}

const encodePath = (path: string) => path.split('/').map(encodeURIComponent).join('/');
const query = (values: Record<string, string | null | undefined>) => {
  const text = new URLSearchParams(Object.entries(values).filter((entry): entry is [string, string] => Boolean(entry[1]))).toString();
  return text === '' ? '' : `?${text}`;
};

/** The address of a file: in the current state, or in that of a manifest. */
export function fileUrl(workspace: string, path: string, manifest?: string | null): string {
  return `${workspacePath(workspace)}/files/${encodePath(path)}${query({ manifest })}`;
}

export const workspaceKeys = {
  all: ['workspaces'] as const,
  one: (workspace: string) => ['workspaces', 'one', workspace] as const,
};

export const workspacesQuery = queryOptions({
  queryKey: ['workspaces', 'list'],
  queryFn: async () => (await request<{ workspaces: Workspace[] }>('/api/workspaces?page_size=500')).workspaces,
  retry: false,
});

const getFiles = (workspace: string, manifest?: string) => request<FileList>(`${workspacePath(workspace)}/files${query({ manifest })}`);

export const filesQuery = (workspace: string, manifest?: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'files', manifest ?? null],
    queryFn: () => getFiles(workspace, manifest),
    retry: false,
  });

/** The content of a file, and the mark by which one knows whether it changed since. */
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

const getManifests = async (workspace: string) => (await request<{ manifests: Manifest[] }>(`${workspacePath(workspace)}/manifests?page_size=200`)).manifests;

export const manifestsQuery = (workspace: string) => queryOptions({ queryKey: [...workspaceKeys.one(workspace), 'manifests'], queryFn: () => getManifests(workspace), retry: false });

/** What differs; against nothing, every file is new. */
async function getDiff(workspace: string, from: string | null, to: string): Promise<ChangedFile[]> {
  if (from !== null) return (await request<{ changes: ChangedFile[] }>(`${workspacePath(workspace)}/diff${query({ from, to })}`)).changes;
  return (await getFiles(workspace, to)).files.filter((file) => file.kind !== 'folder').map((file) => ({ path: file.path, change: 'added' }));
}

export const workspaceDiffQuery = (workspace: string, from: string | null, to: string) =>
  queryOptions({ queryKey: [...workspaceKeys.one(workspace), 'diff', from, to], queryFn: () => getDiff(workspace, from, to), staleTime: Number.POSITIVE_INFINITY, retry: false });

export interface LastCall {
  manifest: Manifest;
  changes: ChangedFile[];
}

/** What the last call changed; `null` if no call changed anything. */
export const lastCallQuery = (workspace: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'changes'],
    queryFn: async (): Promise<LastCall | null> => {
      const manifest = (await getManifests(workspace)).find((each) => each.source === 'tool_run');
      return manifest ? { manifest, changes: await getDiff(workspace, manifest.parent_id, manifest.id) } : null;
    },
    retry: false,
  });

export const workspaces = {
  /** Writes a file. With `etag`, only if nobody changed it since. */
  put: async (workspace: string, path: string, content: Blob | string, etag?: string | null) => {
    const address = fileUrl(workspace, path);
    if (etag && (await entityTag(address)) !== etag) throw new ApiError(412, undefined, 'The file has changed.');
    return upload<unknown>(address, { method: 'PUT', body: content, headers: { 'Content-Type': 'application/octet-stream' } });
  },
  remove: (workspace: string, path: string) => request<unknown>(fileUrl(workspace, path), { method: 'DELETE' }),
  restore: (workspace: string, manifest: string) => request<unknown>(`${workspacePath(workspace)}/restore`, { method: 'POST', json: { manifest_id: manifest } }),
};

// --- Toolsets

export interface Signature {
  status: 'unsigned' | 'trusted' | 'unknown_key' | 'invalid';
  key_name?: string;
  public_key?: string;
  reason?: string;
}

export interface PackageServer {
  id: string;
  command?: string;
  url?: string;
  variables: string[];
  network: boolean;
  sandbox: boolean;
  enabled: boolean;
}

export interface PackageTool {
  id: string;
  name: string;
  description: string;
  /** What it runs. */
  runs?: string;
  renderers: string[];
  requires_confirmation: boolean;
  permissions: { network: boolean; sandbox: boolean };
  enabled: boolean;
}

/** What is in a package. */
export interface PackageContent {
  id: string;
  name: string;
  version: string;
  description: string;
  is_skill: boolean;
  tools: PackageTool[];
  mcp_servers: PackageServer[];
  dependencies: string[];
  has_wheels: boolean;
  files: { path: string; size: number }[];
  total_bytes: number;
  signature: Signature;
  warnings: Problem[];
}

export interface InstalledToolset {
  id: string;
  name: string;
  version: string;
  description: string;
  source_type: 'zip' | 'local' | 'url';
  /** Where `update` reads it again. */
  source_ref: string | null;
  /** What a roll back restores. */
  previous: string | null;
  signed_by: string | null;
  mcp_servers: string[];
  dependencies: string[];
  installed_at: string;
  installed_by: string;
}

export interface Toolset extends InstalledToolset {
  enabled: boolean;
  /** How many tools it has. */
  tools: number;
}

export interface ToolsetPreview {
  package: PackageContent;
  /** The toolset that it would update. */
  replaces: InstalledToolset | null;
}

interface InstalledReport {
  toolset: InstalledToolset;
}

export const toolsetKeys = { all: ['toolsets'] as const };

export const toolsetsQuery = queryOptions({
  queryKey: ['toolsets', 'list'],
  queryFn: async () => (await request<{ toolsets: Toolset[] }>('/api/toolsets?page_size=500')).toolsets,
  retry: false,
});

const toolset = (id: string) => `/api/toolsets/${encodeURIComponent(id)}`;

/** A toolset with what its package contains. */
export const toolsetQuery = (id: string) =>
  queryOptions({ queryKey: ['toolsets', 'one', id], queryFn: () => request<Toolset & { content: PackageContent }>(toolset(id)), retry: false });

/** Whether the server knows these routes: the navigation shows their pages only then. */
export const servesToolsetsQuery = queryOptions({
  queryKey: ['toolsets', 'served'],
  queryFn: async () => (await raw('/api/toolsets?page_size=1')).status < 400,
  staleTime: Number.POSITIVE_INFINITY,
  refetchOnWindowFocus: false,
  retry: false,
});

export type ToolsetSource = { file: Blob } | { url: string };

function send<T>(source: ToolsetSource, parameters: string): Promise<T> {
  const path = `/api/toolsets${parameters}`;
  return 'file' in source ? upload<T>(path, { method: 'POST', body: source.file, headers: { 'Content-Type': 'application/zip' } }) : request<T>(path, { method: 'POST', json: { url: source.url } });
}

export interface RendererSetting {
  renderer: string;
  priority: number;
  config: JsonObject;
}

export const toolsets = {
  inspect: (source: ToolsetSource) => send<ToolsetPreview>(source, '?dry_run=true'),
  /** `allowUnsandboxed` lets tools that ask for it run without isolation. */
  install: async (source: ToolsetSource, allowUnsandboxed: boolean) => (await send<InstalledReport>(source, allowUnsandboxed ? '?allow_unsandboxed=true' : '')).toolset,
  enable: (id: string, enabled: boolean) => request<Toolset>(`${toolset(id)}/enable`, { method: 'POST', json: { enabled } }),
  update: async (id: string) => (await request<InstalledReport>(`${toolset(id)}/update`, { method: 'POST' })).toolset,
  rollback: async (id: string) => (await request<InstalledReport>(`${toolset(id)}/rollback`, { method: 'POST' })).toolset,
  remove: (id: string) => request<unknown>(toolset(id), { method: 'DELETE' }),
  exportUrl: (id: string) => `${toolset(id)}/export`,
  /** Sets how the results of a tool are shown: a new revision of its definition, published. An update keeps it. */
  setRenderers: async (ref: string, renderers: RendererSetting[]) => {
    const { text } = await request<{ text: string }>(`/api/tools/${encodeURIComponent(ref)}/source?format=json`);
    await tools.update(ref, JSON.stringify({ ...(JSON.parse(text) as JsonObject), renderers }, null, 2), 'json');
    return tools.publish(ref);
  },
};

/** The problems that a rejected package has, all at once. */
export function packageProblems(error: unknown): Problem[] {
  const list: Json | unknown = error instanceof ApiError ? error.details['problems'] : undefined;
  return Array.isArray(list) ? (list as Problem[]) : [];
}
