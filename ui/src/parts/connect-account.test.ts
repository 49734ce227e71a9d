import { expect, it } from 'vitest';
import { missingAccount } from '@/api/error';
import { connectPath } from './connect-account';

it('leads to the page of accounts of this server', () => {
  expect(connectPath('mcp:mail')).toBe('/ui/accounts?connect=mcp%3Amail');
});

it('finds the account that an error asks for', () => {
  expect(missingAccount({ code: 'credential_required', details: { provider: 'github', url: 'https://evil.example' } })).toBe('github');
  expect(missingAccount({ code: 'credential_required', details: null })).toBeUndefined();
  expect(missingAccount({ code: 'credential_required' })).toBeUndefined();
  expect(missingAccount({ code: 'forbidden', details: { provider: 'github' } })).toBeUndefined();
});
