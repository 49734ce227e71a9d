/** Buckets and subtypes of tools, and the filter of the list. */
import type { ImplementationType, ToolType } from '@/api/types';
import { translator, type MessageKey, type Translate } from '@/i18n';

export const TOOL_BUCKETS: readonly { value: ToolType; label: MessageKey; hint: MessageKey }[] = [
  { value: 'custom', label: 'bucket.custom', hint: 'bucket.custom.hint' },
  { value: 'mcp', label: 'bucket.mcp', hint: 'bucket.mcp.hint' },
  { value: 'artifact', label: 'bucket.artifact', hint: 'bucket.artifact.hint' },
  { value: 'built_in', label: 'bucket.built_in', hint: 'bucket.built_in.hint' },
];

export const TOOL_SUBTYPES: readonly { value: ImplementationType; label: MessageKey }[] = [
  { value: 'http', label: 'subtype.http' },
  { value: 'script', label: 'subtype.script' },
  { value: 'exec', label: 'subtype.exec' },
  { value: 'python', label: 'subtype.python' },
  { value: 'wasm', label: 'subtype.wasm' },
  { value: 'mcp', label: 'subtype.mcp' },
  { value: 'function', label: 'subtype.function' },
  { value: 'file_read', label: 'subtype.file_read' },
  { value: 'file_write', label: 'subtype.file_write' },
  { value: 'agent_call', label: 'subtype.agent_call' },
  { value: 'rag_retrieval', label: 'subtype.rag_retrieval' },
  { value: 'artifact', label: 'subtype.artifact' },
  { value: 'steps', label: 'subtype.steps' },
];

interface Classified {
  tool_type?: ToolType | null;
  built_in?: boolean;
  source?: string;
  implementation_type?: string | null;
}

/** The bucket of a tool: as the server derived it, or derived by the same rules. */
export function getToolBucket(tool: Classified): ToolType {
  if (tool.tool_type) return tool.tool_type;
  if (tool.built_in === true || tool.source === 'built-in') return 'built_in';
  if (tool.implementation_type === 'mcp') return 'mcp';
  if (tool.implementation_type === 'artifact') return 'artifact';
  return 'custom';
}

const ENGLISH = translator('en');

/** The word for an implementation type: English, unless a translator says otherwise. */
export function getSubtypeLabel(type: string | null | undefined, t: Translate = ENGLISH): string {
  if (!type) return '—';
  const label = TOOL_SUBTYPES.find((subtype) => subtype.value === type)?.label;
  return label ? t(label) : type;
}

export interface Filterable extends Classified {
  name: string;
  display_name: string;
  description: string;
  bundle: string;
  tags: string[];
  status: string;
  enabled: boolean;
  ready: boolean;
  warning_count: number;
}

export interface ToolFilters {
  q?: string;
  status?: string[];
  bucket?: string[];
  subtype?: string[];
  bundle?: string[];
  tag?: string[];
  /** `warnings`: ready with warnings; `failed`: not ready. */
  health?: string;
}

/** The status that the list shows: a disabled tool is `disabled` whatever else it is. */
export function shownStatus(tool: Pick<Filterable, 'enabled' | 'status'>): string {
  return tool.enabled ? tool.status : 'disabled';
}

const allows = (chosen: string[] | undefined, value: string) => !chosen || chosen.length === 0 || chosen.includes(value);

export function filterTools<T extends Filterable>(tools: readonly T[], filters: ToolFilters): T[] {
  const words = (filters.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
  return tools.filter((tool) => {
    if (!allows(filters.status, shownStatus(tool))) return false;
    if (!allows(filters.bucket, getToolBucket(tool))) return false;
    if (!allows(filters.subtype, tool.implementation_type ?? '')) return false;
    if (!allows(filters.bundle, tool.bundle)) return false;
    if (filters.tag && filters.tag.length > 0 && !filters.tag.some((tag) => tool.tags.includes(tag))) return false;
    if (filters.health === 'warnings' && !(tool.ready && tool.warning_count > 0)) return false;
    if (filters.health === 'failed' && tool.ready) return false;
    if (words.length === 0) return true;
    const text = `${tool.name} ${tool.display_name} ${tool.bundle} ${tool.tags.join(' ')} ${tool.description}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

/** With a filter text, tools whose name matches come first. */
export function rankTools<T extends Filterable>(tools: T[], q: string | undefined): T[] {
  const word = (q ?? '').trim().toLowerCase();
  if (word === '') return tools;
  const rank = (tool: T) => (tool.name.toLowerCase().startsWith(word) ? 0 : tool.name.toLowerCase().includes(word) ? 1 : 2);
  return tools.map((tool) => [rank(tool), tool] as const).toSorted((a, b) => a[0] - b[0]).map(([, tool]) => tool);
}
