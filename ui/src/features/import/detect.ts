/** What a pasted or dropped text is. */

export type ImportKind = 'empty' | 'url' | 'curl' | 'openapi' | 'mcp' | 'skill' | 'yaml' | 'json';

export function detectKind(text: string, fileName = ''): ImportKind {
  const trimmed = text.trim();
  if (trimmed === '') return 'empty';
  if (/^https?:\/\/\S+$/.test(trimmed)) return 'url';
  if (/^(?:\$\s+)?curl\s/.test(trimmed)) return 'curl';
  if (/^---\s*\n/.test(trimmed) && (fileName.endsWith('.skill') || /\n---\s*(?:\n|$)/.test(trimmed))) return 'skill';
  const head = trimmed.slice(0, 4000);
  if (/["']?(openapi|swagger)["']?\s*:\s*["']?[23]/.test(head)) return 'openapi';
  if (trimmed.startsWith('{')) return /"(mcpServers|servers)"\s*:\s*\{/.test(trimmed) ? 'mcp' : 'json';
  return 'yaml';
}
