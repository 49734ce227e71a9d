import { describe, expect, it } from 'vitest';
import type { PackageServer, PackageTool } from '@/api/types';
import { activeRenderer, permissions, winningPriority } from './permissions';

const tool = (id: string, wishes: Partial<PackageTool['permissions']> = {}): PackageTool => ({ id, name: id, description: '', enabled: true, category: '', implementation_type: 'python', requires_confirmation: false, renderers: [], permissions: { sandbox: true, network: false, policy: 'allow', ...wishes } });
const server = (change: Partial<PackageServer> & { id: string }): PackageServer => ({ variables: [], network: false, sandbox: true, enabled: true, ...change });

describe('permissions', () => {
  it('lists what a package would run and reach', () => {
    const content = { tools: [tool('a'), tool('b', { sandbox: false, network: true })], mcp_servers: [server({ id: 'm', command: 'npx -y maps' }), server({ id: 'r', url: 'https://x.example/mcp' })], dependencies: ['requests==2.32'] };
    expect(permissions(content)).toEqual([
      { kind: 'command', subject: 'm: npx -y maps' }, { kind: 'url', subject: 'r: https://x.example/mcp' },
      { kind: 'no_sandbox', subject: 'b' }, { kind: 'network', subject: 'b' }, { kind: 'dependencies', subject: 'requests==2.32' },
    ]);
    expect(permissions({ tools: [tool('a')], mcp_servers: [], dependencies: [] })).toEqual([]);
  });
});

describe('renderers', () => {
  it('the highest priority wins, the first among equal ones', () => expect(activeRenderer([{ priority: 0, renderer: 'json' }, { priority: 5, renderer: 'code' }, { priority: 5, renderer: 'table' }])?.renderer).toBe('code'));
  it('a new one wins over all others', () => expect([winningPriority([]), winningPriority([{ priority: 7 }, { priority: 3 }])]).toEqual([10, 17]));
});
