import { describe, expect, it } from 'vitest';
import { describedBy, endOf, matches, peopleOf, redirectUris } from './application-text';

const connected = (client_id: string, name: string) => ({ client_id, actor: { id: name, kind: 'person' as const, name } });

describe('connected applications', () => {
  it('end with the first of their ends', () => {
    const [early, late] = ['2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z'];
    expect(endOf({ expires_at: null, idle_until: null })).toBeNull();
    expect(endOf({ expires_at: late, idle_until: early })).toBe(early);
    expect(endOf({ expires_at: early, idle_until: late })).toBe(early);
    expect(endOf({ expires_at: late, idle_until: null })).toBe(late);
  });

  it('are described by a host, or by nobody who was checked', () => {
    expect(describedBy({ client_host: 'claude.ai', client_id: 'x' })).toEqual({ host: 'claude.ai' });
    expect(describedBy({ client_host: null, client_id: 'haft_client_1' })).toBe('unverified');
  });

  it('are found by name, destination, client and person', () => {
    const application = { name: 'Chat', destination: 'chat.example', client_id: 'haft_client_1', actor: { id: '1', kind: 'person' as const, name: 'Ann' } };
    for (const text of ['chat', 'EXAMPLE', 'client_1', 'ann', '']) expect(matches(application, text)).toBe(true);
    expect(matches(application, 'bob')).toBe(false);
    expect(matches({ ...application, actor: null }, 'ann')).toBe(false);
  });

  it('are registered with one redirect URI per line', () => {
    expect(redirectUris(' https://a.test/x\n\nhttps://b.test/y, https://a.test/x ')).toEqual(['https://a.test/x', 'https://b.test/y']);
    expect(redirectUris(' \n')).toEqual([]);
  });

  it('name the people who lose one of them', () => {
    expect(peopleOf([connected('a', 'Bob'), connected('a', 'Ann'), connected('a', 'Ann'), connected('b', 'Eve')], 'a')).toEqual(['Ann', 'Bob']);
  });
});
