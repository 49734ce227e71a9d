/** What a pasted or dropped text is. */

/** Descriptions of APIs, each operation of which becomes a tool. */
export type ApiKind = 'openapi' | 'postman' | 'bruno' | 'graphql';

export type ImportKind = 'empty' | 'url' | 'curl' | ApiKind | 'mcp' | 'skill' | 'yaml' | 'json';

/** The kinds of descriptions; what is fetched from a URL is detected by the server. */
export const API_KINDS: readonly ImportKind[] = ['url', 'openapi', 'postman', 'bruno', 'graphql'];

export function detectKind(text: string, fileName = ''): ImportKind {
  const trimmed = text.trim();
  if (trimmed === '') return 'empty';
  if (/^https?:\/\/\S+$/.test(trimmed)) return 'url';
  if (/^(?:\$\s+)?curl\s/.test(trimmed)) return 'curl';
  if (/^---\s*\n/.test(trimmed) && (fileName.endsWith('.skill') || /\n---\s*(?:\n|$)/.test(trimmed))) return 'skill';
  const head = trimmed.slice(0, 4000);
  if (/["']?(openapi|swagger)["']?\s*:\s*["']?[23]/.test(head)) return 'openapi';
  if (/^meta \{\s*$/m.test(head)) return 'bruno';
  if (!trimmed.startsWith('{') && /^(extend )?(type (Query|Mutation)|schema [{@])/m.test(trimmed)) return 'graphql';
  if (trimmed.startsWith('{') && /schema\.getpostman\.com|"_postman_id"/.test(head)) return 'postman';
  if (/^\{\s*("data"\s*:\s*\{\s*)?"__schema"/.test(head)) return 'graphql';
  if (/^\{\s*"files"\s*:\s*\{/.test(head)) return 'bruno';
  if (trimmed.startsWith('{')) return /"(mcpServers|servers)"\s*:\s*\{/.test(trimmed) ? 'mcp' : 'json';
  return 'yaml';
}
