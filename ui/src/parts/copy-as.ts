/** One call as text for other places: curl, Python, TypeScript, the command line, MCP. */
import type { JsonObject } from '@/api/types';

export interface CopyTarget {
  origin: string;
  ref: string;
  name: string;
  args: JsonObject;
}

export const COPY_FORMATS = ['curl', 'python', 'typescript', 'cli', 'mcp'] as const;
export type CopyFormat = (typeof COPY_FORMATS)[number];
export const COPY_LABELS: Record<CopyFormat, string> = { curl: 'curl', python: 'Python', typescript: 'TypeScript', cli: 'CLI', mcp: 'MCP' };

/** Quotes a word for a POSIX shell. */
export function shellQuote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/** A JSON value as a Python literal. */
export function pythonLiteral(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (value === true) return 'True';
  if (value === false) return 'False';
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(', ')}]`;
  if (typeof value === 'object') return `{${Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}: ${pythonLiteral(item)}`).join(', ')}}`;
  return JSON.stringify(value);
}

export function copyAs(format: CopyFormat, { origin, ref, name, args }: CopyTarget): string {
  const url = `${origin}/api/tools/${encodeURIComponent(ref)}/invoke`;
  const json = JSON.stringify({ args });
  switch (format) {
    case 'curl':
      return `curl -s ${shellQuote(url)} \\\n  -H "Authorization: Bearer $HAFT_TOKEN" \\\n  -H 'Content-Type: application/json' \\\n  -d ${shellQuote(json)}`;
    case 'python':
      return `import os, requests\n\nresponse = requests.post(\n    ${JSON.stringify(url)},\n    headers={"Authorization": f"Bearer {os.environ['HAFT_TOKEN']}"},\n    json={"args": ${pythonLiteral(args)}},\n)\nprint(response.json())`;
    case 'typescript':
      return `const response = await fetch(${JSON.stringify(url)}, {\n  method: 'POST',\n  headers: { Authorization: \`Bearer \${process.env.HAFT_TOKEN}\`, 'Content-Type': 'application/json' },\n  body: JSON.stringify(${json}),\n});\nconst outcome = await response.json();`;
    case 'cli': {
      const words = Object.entries(args).map(([key, value]) => ` -a ${shellQuote(`${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)}`);
      return `haft tool call ${shellQuote(ref)}${words.join('')}`;
    }
    case 'mcp':
      return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }, null, 2);
  }
}
