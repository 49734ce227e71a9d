import { describe, expect, it } from 'vitest';
import type { ToolsetTool } from '@/api/unreleased';
import { activeRenderer, commandLine, overridePriority, permissions } from './permissions';

const tool = (change: Partial<ToolsetTool>): ToolsetTool => ({ name: 'a', description: '', enabled: true, requires_confirmation: false, sandbox: true, network: false, renderers: [], ...change });

describe('permissions', () => {
  it('lists what a package would run and reach', () => {
    const content = { tools: [tool({}), tool({ name: 'b', sandbox: false, network: true })], mcp_servers: [{ id: 'm', command: 'npx', args: ['-y', 'a b'] }, { id: 'r', url: 'https://x.example/mcp' }], dependencies: ['requests==2.32'] };
    expect(permissions(content)).toEqual([
      { kind: 'command', subject: "m: npx -y 'a b'" }, { kind: 'url', subject: 'r: https://x.example/mcp' },
      { kind: 'no_sandbox', subject: 'b' }, { kind: 'network', subject: 'b' }, { kind: 'dependencies', subject: 'requests==2.32' },
    ]);
    expect(permissions({ tools: [tool({})], mcp_servers: [], dependencies: [] })).toEqual([]);
  });
  it('quotes a command so that it can be read and pasted', () => expect(commandLine({ command: 'sh', args: ['-c', "echo 'x' && rm -rf y"] })).toBe(String.raw`sh -c 'echo '\''x'\'' && rm -rf y'`));
});

describe('renderers', () => {
  it('the highest priority wins', () => expect(activeRenderer([{ priority: 0, renderer: 'json' }, { priority: 5, renderer: 'code' }])?.renderer).toBe('code'));
  it('an override wins over those of the package', () => expect(overridePriority([{ priority: 7 }, { priority: 900, override: true }])).toBe(107));
});
