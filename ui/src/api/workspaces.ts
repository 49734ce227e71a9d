/** Workspaces: those with a name, and those of chats, which have the same routes at another address. */
import { queryOptions } from '@tanstack/react-query';
import { client, data, download, upload } from './client';
import type { FileChange, Manifest, WorkspaceUse } from './types';

const CHAT = 'chat:';

export const isChat = (workspace: string): boolean => workspace.startsWith(CHAT);

const named = (name: string) => ({ name });
const ofChat = (name: string) => ({ id: name.slice(CHAT.length) });

/** The address under which a workspace is found: of a chat, or of its own. */
export function workspacePath(name: string): string {
  return isChat(name) ? `/api/chats/${encodeURIComponent(ofChat(name).id)}/workspace` : `/api/workspaces/${encodeURIComponent(name)}`;
}

/** The address of a file: in the current state, or in that of a manifest. */
export function fileUrl(workspace: string, path: string, manifest?: string | null): string {
  const encoded = path.split('/').map(encodeURIComponent).join('/');
  return `${workspacePath(workspace)}/files/${encoded}${manifest ? `?${new URLSearchParams({ manifest })}` : ''}`;
}

/** The address at which a browser saves all files of a state as a ZIP file. */
export function archiveUrl(workspace: string, manifest?: string | null): string {
  return `${workspacePath(workspace)}/archive${manifest ? `?${new URLSearchParams({ manifest })}` : ''}`;
}

export const workspaceKeys = {
  all: ['workspaces'] as const,
  one: (workspace: string) => ['workspaces', 'one', workspace] as const,
};

export const workspacesQuery = queryOptions({
  queryKey: ['workspaces', 'list'],
  queryFn: async () => (await data(client.GET('/workspaces', { params: { query: { page_size: 500 } } }))).workspaces,
  retry: false,
});

function getFiles(workspace: string, manifest?: string) {
  const query = manifest === undefined ? {} : { manifest };
  return isChat(workspace)
    ? data(client.GET('/chats/{id}/workspace/files', { params: { path: ofChat(workspace), query } }))
    : data(client.GET('/workspaces/{name}/files', { params: { path: named(workspace), query } }));
}

export const filesQuery = (workspace: string, manifest?: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'files', manifest ?? null],
    queryFn: () => getFiles(workspace, manifest),
    retry: false,
  });

/** The content of a file, and the mark by which one knows whether it changed since. */
export type FileContent = Awaited<ReturnType<typeof download>>;

export const fileQuery = (workspace: string, path: string, manifest?: string | null) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'file', path, manifest ?? null],
    queryFn: ({ signal }): Promise<FileContent> => download(fileUrl(workspace, path, manifest), signal),
    retry: false,
    structuralSharing: false,
  });

async function getManifests(workspace: string): Promise<Manifest[]> {
  const query = { page_size: 200 };
  const page = isChat(workspace)
    ? await data(client.GET('/chats/{id}/workspace/manifests', { params: { path: ofChat(workspace), query } }))
    : await data(client.GET('/workspaces/{name}/manifests', { params: { path: named(workspace), query } }));
  return page.manifests;
}

export const manifestsQuery = (workspace: string) => queryOptions({ queryKey: [...workspaceKeys.one(workspace), 'manifests'], queryFn: () => getManifests(workspace), retry: false });

/** What differs; against nothing, every file is new. */
async function getDiff(workspace: string, from: string | null, to: string): Promise<FileChange[]> {
  if (from === null) return (await getFiles(workspace, to)).files.filter((file) => file.kind !== 'folder').map((file) => ({ path: file.path, change: 'added' }));
  const query = { from, to };
  const list = isChat(workspace)
    ? await data(client.GET('/chats/{id}/workspace/diff', { params: { path: ofChat(workspace), query } }))
    : await data(client.GET('/workspaces/{name}/diff', { params: { path: named(workspace), query } }));
  return list.changes;
}

export const workspaceDiffQuery = (workspace: string, from: string | null, to: string) =>
  queryOptions({ queryKey: [...workspaceKeys.one(workspace), 'diff', from, to], queryFn: () => getDiff(workspace, from, to), staleTime: Number.POSITIVE_INFINITY, retry: false });

/** What the last call changed; `null` if no call changed anything. */
export const lastCallQuery = (workspace: string) =>
  queryOptions({
    queryKey: [...workspaceKeys.one(workspace), 'changes'],
    queryFn: async () => {
      const manifest = (await getManifests(workspace)).find((each) => each.source === 'tool_run');
      return manifest ? { manifest, changes: await getDiff(workspace, manifest.parent_id, manifest.id) } : null;
    },
    retry: false,
  });

export const workspaces = {
  /** Writes a file. With `etag`, only if nobody changed it since. */
  put: (workspace: string, path: string, content: Blob | string, etag?: string | null) =>
    upload<WorkspaceUse>(fileUrl(workspace, path), { method: 'PUT', body: content, headers: { 'Content-Type': 'application/octet-stream', ...(etag ? { 'If-Match': etag } : {}) } }),
  remove: (workspace: string, path: string) => upload<WorkspaceUse>(fileUrl(workspace, path), { method: 'DELETE' }),
  restore: (workspace: string, manifest: string) =>
    isChat(workspace)
      ? data(client.POST('/chats/{id}/workspace/restore', { params: { path: ofChat(workspace) }, body: { manifest_id: manifest } }))
      : data(client.POST('/workspaces/{name}/restore', { params: { path: named(workspace) }, body: { manifest_id: manifest } })),
};
