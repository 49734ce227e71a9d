import { describe, expect, it } from 'vitest';
import { credentialBody, type CredentialDraft } from './credential-body';
import { changedEvents, WEBHOOK_EVENTS } from './webhook-events';

const draft = (change: Partial<CredentialDraft>): CredentialDraft => ({ kind: 'value', value: '', fields: [], category: 'custom', provider: '', variant: '', description: '', ...change });

describe('credentialBody', () => {
  it('sends a new value', () => expect(credentialBody(draft({ value: 's' }), undefined)).toEqual({ value: 's', category: 'custom', description: '' }));
  it('keeps a stored value that was not entered again', () => expect(credentialBody(draft({ description: 'new' }), { payload: null })).not.toHaveProperty('value'));
  it('does not keep a value where fields are stored', () => expect(credentialBody(draft({ value: '' }), { payload: { a: '***' } })).toHaveProperty('value', ''));
  it('keeps stored fields, and sends new and changed ones', () => {
    const fields = [{ id: 0, name: 'api_key', value: '' }, { id: 1, name: ' endpoint ', value: 'https://x' }, { id: 2, name: 'fresh', value: '' }, { id: 3, name: '', value: 'lost' }];
    expect(credentialBody(draft({ kind: 'fields', fields }), { payload: { api_key: '***', endpoint: '***' } }).payload).toEqual({ api_key: '***', endpoint: 'https://x', fresh: '' });
  });
  it('names the provider only where there is one', () => {
    expect(credentialBody(draft({ provider: ' web_search ', variant: '' }), undefined)).toMatchObject({ provider_key: 'web_search' });
    expect(credentialBody(draft({}), undefined)).not.toHaveProperty('provider_key');
  });
});

describe('webhooks', () => {
  it('patch the events only if they change', () => {
    expect(changedEvents(['call.finished', 'approval.requested'], ['approval.requested', 'call.finished'])).toEqual({});
    expect(changedEvents(['call.finished'], ['call.finished', 'approval.decided'])).toEqual({ events: ['call.finished', 'approval.decided'] });
    expect(changedEvents(['call.finished'], ['approval.decided'])).toEqual({ events: ['approval.decided'] });
  });
  it('do not subscribe to test events', () => expect(WEBHOOK_EVENTS).not.toContain('webhook.test'));
});
