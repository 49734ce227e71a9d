import { expect, it } from 'vitest';
import type { AccountProvider } from '@/api/types';
import { providerBody, providerDraft, reference, revokesAccounts } from './provider-draft';

const oauth: AccountProvider = {
  name: 'calendar', display_name: 'Calendar', help: '',
  oauth: { issuer: 'https://login.example.com', client_id: 'haft', client_secret: '${SECRET}', scopes: ['read', 'write'] },
};

it('sends what was loaded', () => {
  const { name: _, ...body } = oauth;
  expect(providerBody(providerDraft(oauth), oauth)).toEqual(body);
  expect(providerBody(providerDraft({ name: 'github', shared: '${TOKEN}' }))).toEqual({ display_name: '', help: '', shared: '${TOKEN}' });
});

it('keeps what the form does not know', () => {
  const stored = { ...oauth, oauth: { ...oauth.oauth, future: 'x' } } as unknown as AccountProvider;
  expect(providerBody(providerDraft(stored), stored).oauth).toMatchObject({ future: 'x' });
});

it('sends either the issuer or the endpoints', () => {
  const draft = { ...providerDraft(oauth), endpoints: 'urls' as const, authorizationEndpoint: 'https://a.test/authorize', tokenEndpoint: 'https://a.test/token' };
  expect(providerBody(draft, oauth).oauth).toEqual({ authorization_endpoint: 'https://a.test/authorize', token_endpoint: 'https://a.test/token', client_id: 'haft', client_secret: '${SECRET}', scopes: ['read', 'write'] });
});

it('makes references of names', () => {
  expect(reference(' TOKEN ')).toBe('${TOKEN}');
  expect(reference('${TOKEN}')).toBe('${TOKEN}');
  expect(reference(' ')).toBeNull();
  // Whatever else it is, the server says what is wrong with it.
  expect(reference('a b')).toBe('a b');
});

it('knows when accounts are revoked', () => {
  const draft = providerDraft(oauth);
  expect(revokesAccounts(providerBody({ ...draft, displayName: 'Other' }, oauth), oauth)).toBe(false);
  expect(revokesAccounts(providerBody({ ...draft, scopes: 'read' }, oauth), oauth)).toBe(true);
  expect(revokesAccounts(providerBody({ ...draft, kind: 'api_key' }, oauth), oauth)).toBe(true);
  expect(revokesAccounts(providerBody(draft))).toBe(false);
});
