/** What a package asks for, in the order in which a person should look at it. */
import type { PackageContent, PackageTool } from '@/api/types';

export type PermissionKind = 'command' | 'url' | 'no_sandbox' | 'network' | 'dependencies';

export interface Permission {
  kind: PermissionKind;
  /** The tools, the command, the address. */
  subject: string;
}

const names = (tools: readonly PackageTool[], isMeant: (tool: PackageTool) => boolean) => tools.filter(isMeant).map((tool) => tool.id);

export function permissions(content: Pick<PackageContent, 'tools' | 'mcp_servers' | 'dependencies'>): Permission[] {
  const list: Permission[] = content.mcp_servers.map((server) => ({ kind: server.url ? 'url' : 'command', subject: `${server.id}: ${server.url ?? server.command ?? ''}` }));
  const open = names(content.tools, (tool) => !tool.permissions.sandbox);
  const networked = names(content.tools, (tool) => tool.permissions.network);
  if (open.length > 0) list.push({ kind: 'no_sandbox', subject: open.join(', ') });
  if (networked.length > 0) list.push({ kind: 'network', subject: networked.join(', ') });
  if (content.dependencies.length > 0) list.push({ kind: 'dependencies', subject: content.dependencies.join(', ') });
  return list;
}

/** The renderer that is used: the first of those with the highest priority. */
export function activeRenderer<T extends { priority: number }>(renderers: readonly T[]): T | undefined {
  return renderers.toSorted((a, b) => b.priority - a.priority)[0];
}

/** A priority that wins over all others. */
export function winningPriority(renderers: readonly { priority: number }[]): number {
  return Math.max(0, ...renderers.map((renderer) => renderer.priority)) + 10;
}
