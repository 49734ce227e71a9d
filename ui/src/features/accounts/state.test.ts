import { expect, it } from 'vitest';
import type { Connectable } from '@/api/types';
import { requested, stateKey } from './state';

const one = (provider: string, state?: 'connected' | 'expired', has_shared = false): Connectable => ({
  provider, display_name: provider, help: '', kind: 'oauth', has_shared,
  account: state ? { kind: 'oauth', state, scope: null, created_at: '2026-01-01T00:00:00Z', modified_at: '2026-01-01T00:00:00Z', last_used_at: null } : null,
});

it('says whether an account can be used', () => {
  expect(stateKey(one('a', 'connected'))).toBe('accounts.state.connected');
  expect(stateKey(one('a', 'expired', true))).toBe('accounts.state.expired');
  expect(stateKey(one('a', undefined, true))).toBe('accounts.state.shared');
  expect(stateKey(one('a'))).toBe('accounts.state.missing');
});

it('asks to connect what is not connected', () => {
  const all = [one('a', 'connected'), one('b', 'expired'), one('c')];
  expect(requested(all, 'a')).toBeUndefined();
  expect(requested(all, 'b')?.provider).toBe('b');
  expect(requested(all, 'c')?.provider).toBe('c');
  expect(requested(all, 'd')).toBeUndefined();
  expect(requested(all, undefined)).toBeUndefined();
});
