import { expect, it } from 'vitest';
import type { Session } from '@/api/types';
import { visiblePages } from './pages';

const session = (change: Partial<Session>): Session => ({ tenant: 'default', name: 'x', actor: null, owner_id: 'x', token_id: null, role: 'viewer', elevated: false, platform: false, tools: null, rate_limit: null, is_session: true, expires_at: null, ...change });
const paths = (change: Partial<Session>) => visiblePages(session(change)).map((page) => page.to);
const tokens = (change: Partial<Session>) => visiblePages(session(change)).find((page) => page.to === '/tokens')?.label;

it('shows the tokens to admins, and to people their own ones', () => {
  const person = { id: 'ann', kind: 'person' as const, email: null, groups: [], is_reduced: false };
  expect(tokens({ role: 'admin', actor: person })).toBe('nav.tokens');
  expect(tokens({ role: 'viewer', actor: person })).toBe('nav.myTokens');
  expect(tokens({ role: 'editor' })).toBeUndefined();
  expect(tokens({ role: 'editor', actor: { ...person, kind: 'service_account' } })).toBeUndefined();
});

it('shows the people to admins, and the tenants to those of the platform', () => {
  for (const path of ['/people', '/groups', '/service-accounts']) {
    expect(paths({ role: 'admin' })).toContain(path);
    expect(paths({ role: 'editor' })).not.toContain(path);
  }
  expect(paths({ role: 'admin' })).not.toContain('/tenants');
  expect(paths({ role: 'admin', platform: true })).toContain('/tenants');
});
