/** What a package asks for, in the order in which a person should look at it. */
import type { ToolsetContent, ToolsetServer, ToolsetTool } from '@/api/unreleased';

export type PermissionKind = 'command' | 'url' | 'no_sandbox' | 'network' | 'dependencies';

export interface Permission {
  kind: PermissionKind;
  /** The tools, the command, the address. */
  subject: string;
}

/** The command line that a server would run, with quotes where a part needs them. */
export function commandLine({ command, args = [] }: Pick<ToolsetServer, 'command' | 'args'>): string {
  return [command ?? '', ...args].map((part) => (/^[\w@%+=:,./-]+$/.test(part) ? part : `'${part.replaceAll("'", String.raw`'\''`)}'`)).join(' ');
}

const names = (tools: readonly ToolsetTool[], isMeant: (tool: ToolsetTool) => boolean) => tools.filter(isMeant).map((tool) => tool.name);

export function permissions(content: Pick<ToolsetContent, 'tools' | 'mcp_servers' | 'dependencies'>): Permission[] {
  const list: Permission[] = content.mcp_servers.map((server) => (server.url ? { kind: 'url', subject: `${server.id}: ${server.url}` } : { kind: 'command', subject: `${server.id}: ${commandLine(server)}` }));
  const open = names(content.tools, (tool) => !tool.sandbox);
  const networked = names(content.tools, (tool) => tool.network);
  if (open.length > 0) list.push({ kind: 'no_sandbox', subject: open.join(', ') });
  if (networked.length > 0) list.push({ kind: 'network', subject: networked.join(', ') });
  if (content.dependencies.length > 0) list.push({ kind: 'dependencies', subject: content.dependencies.join(', ') });
  return list;
}

/** The renderer that is used: the one with the highest priority. */
export function activeRenderer<T extends { priority: number }>(renderers: readonly T[]): T | undefined {
  return renderers.toSorted((a, b) => b.priority - a.priority)[0];
}

/** A priority that wins over all others. */
export function overridePriority(renderers: readonly { priority: number; override?: boolean }[]): number {
  return Math.max(0, ...renderers.filter((renderer) => renderer.override !== true).map((renderer) => renderer.priority)) + 100;
}
