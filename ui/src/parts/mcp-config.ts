/** Reads the configuration of another MCP client: `mcpServers`, `servers`, or one server. */
import type { NewServer } from '@/api/types';

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);
const texts = (value: unknown): Record<string, string> => (isObject(value) ? Object.fromEntries(Object.entries(value).map(([key, item]) => [key, String(item)])) : {});

function toServer(id: string, value: unknown): NewServer | undefined {
  if (!isObject(value)) return undefined;
  if (typeof value['url'] === 'string') return { id, url: value['url'], headers: texts(value['headers']) } as NewServer;
  if (typeof value['command'] !== 'string') return undefined;
  const args = Array.isArray(value['args']) ? value['args'].map(String) : [];
  return { id, command: value['command'], args, env: texts(value['env']), ...(typeof value['cwd'] === 'string' ? { cwd: value['cwd'] } : {}) } as NewServer;
}

export function parseServers(text: string): { servers: NewServer[]; error: string | undefined } {
  if (text.trim() === '') return { servers: [], error: undefined };
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch (error) {
    return { servers: [], error: error instanceof Error ? error.message : String(error) };
  }
  if (!isObject(parsed)) return { servers: [], error: 'expected an object' };
  const list = [parsed['mcpServers'], parsed['servers'], parsed].find(isObject) ?? {};
  const servers = Object.entries(list).flatMap(([id, value]) => toServer(id, value) ?? []);
  return { servers, error: servers.length === 0 ? 'no server found: expected {"mcpServers": {"name": {"command": …}}}' : undefined };
}
