/** The form of a provider: its fields, and the definition that they stand for. */
import type { AccountProvider, AccountProviderBody, OAuthProvider } from '@/api/types';

export interface ProviderDraft {
  name: string;
  displayName: string;
  help: string;
  shared: string;
  kind: 'api_key' | 'oauth';
  endpoints: 'issuer' | 'urls';
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  clientId: string;
  clientSecret: string;
  scopes: string;
}

export function providerDraft(known?: AccountProvider): ProviderDraft {
  const oauth = known?.oauth;
  return {
    name: known?.name ?? '', displayName: known?.display_name ?? '', help: known?.help ?? '', shared: known?.shared ?? '',
    kind: oauth ? 'oauth' : 'api_key',
    endpoints: oauth && !oauth.issuer ? 'urls' : 'issuer',
    issuer: oauth?.issuer ?? '', authorizationEndpoint: oauth?.authorization_endpoint ?? '', tokenEndpoint: oauth?.token_endpoint ?? '',
    clientId: oauth?.client_id ?? '', clientSecret: oauth?.client_secret ?? '', scopes: (oauth?.scopes ?? []).join(' '),
  };
}

/** A credential as a reference: people enter `NAME` as well as `${NAME}`. */
export function reference(text: string): string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  return /^[A-Za-z0-9_.-]+$/.test(trimmed) ? `\${${trimmed}}` : trimmed;
}

/** The OAuth client of the form. What the form does not know stays as it is stored. */
function oauthOf(draft: ProviderDraft, stored: OAuthProvider | null | undefined): OAuthProvider {
  const { issuer: _issuer, authorization_endpoint: _authorization, token_endpoint: _token, client_secret: _secret, ...rest } = stored ?? { client_id: '' };
  const secret = reference(draft.clientSecret);
  return {
    ...rest,
    ...(draft.endpoints === 'issuer' ? { issuer: draft.issuer.trim() } : { authorization_endpoint: draft.authorizationEndpoint.trim(), token_endpoint: draft.tokenEndpoint.trim() }),
    client_id: draft.clientId.trim(),
    ...(secret ? { client_secret: secret } : {}),
    scopes: draft.scopes.split(/[\s,]+/).filter(Boolean),
  };
}

/** What to send. */
export function providerBody(draft: ProviderDraft, stored?: AccountProvider): AccountProviderBody {
  const shared = reference(draft.shared);
  return {
    display_name: draft.displayName.trim(), help: draft.help.trim(),
    ...(shared ? { shared } : {}),
    ...(draft.kind === 'oauth' ? { oauth: oauthOf(draft, stored?.oauth) } : {}),
  };
}

/** The same text for the same client. */
function oauthText(oauth: OAuthProvider | null | undefined): string {
  if (!oauth) return '';
  const { scopes, ...rest } = oauth;
  const fields = Object.entries(rest).filter(([, value]) => value !== null && value !== undefined);
  return JSON.stringify([fields.toSorted(([a], [b]) => a.localeCompare(b)), scopes ?? []]);
}

/** Whether saving revokes the accounts there: the server does so if the OAuth client changes. */
export function revokesAccounts(body: AccountProviderBody, stored?: AccountProvider): boolean {
  if (!stored) return false;
  return oauthText(body.oauth) !== oauthText(stored.oauth);
}
