/** Writes: plain functions; components wrap them in `useAction`. */
import { body, client, data, raw, request } from './client';
import { ApiError } from './error';
import type {
  AccountProviderBody, CredentialBody, CurlImport, DeprecateBody, ErrorBody, ExplainBody, ImportBody, JsonObject, McpImport, NewServer, NewToken, NewWebhook, PolicyRule,
  RateLimit, RememberScope, ServerPatch, SourceForm, TenantPatch, Tool, ToolExample, ToolsImport, ValidationReport, WebhookPatch,
} from './types';

const ref = (value: string) => ({ path: { ref: value } });
const id = (value: string) => ({ path: { id: value } });

export const CONTENT_TYPES: Record<SourceForm, string> = {
  json: 'application/json',
  yaml: 'application/yaml',
  skill: 'application/x-haft-skill',
};

export const tools = {
  create: (text: string, form: SourceForm, bundle?: string) =>
    request<Tool>(`/api/tools${bundle ? `?bundle=${encodeURIComponent(bundle)}` : ''}`, {
      method: 'POST', text, contentType: CONTENT_TYPES[form],
    }),
  update: (target: string, text: string, form: SourceForm) =>
    request<Tool>(`/api/tools/${encodeURIComponent(target)}`, { method: 'PUT', text, contentType: CONTENT_TYPES[form] }),
  validate: (target: string, text: string, form: SourceForm) =>
    request<ValidationReport>(`/api/tools/${encodeURIComponent(target)}/validate`, {
      method: 'POST', json: { text, format: form, check_syntax: true, check_parameters: true },
    }),
  enable: (target: string, enabled: boolean) => data(client.PATCH('/tools/{ref}', { params: ref(target), body: { enabled } })),
  publish: (target: string) => data(client.POST('/tools/{ref}/publish', { params: ref(target) })),
  deprecate: (target: string, options: Partial<DeprecateBody>) =>
    data(client.POST('/tools/{ref}/deprecate', { params: ref(target), body: options as DeprecateBody })),
  /** `force` deletes it even if it is in use. */
  remove: (target: string, force = false) => data(client.DELETE('/tools/{ref}', { params: { ...ref(target), query: force ? { force } : {} } })),
  /** Restores a deleted tool with its revisions. */
  undelete: (target: string) => data(client.POST('/tools/{ref}/undelete', { params: ref(target) })),
  restore: (target: string, n: number) =>
    data(client.POST('/tools/{ref}/revisions/{n}/restore', { params: { path: { ref: target, n } } })),
  setVersion: (target: string, version: string) =>
    data(client.POST('/tools/{ref}/version', { params: { ...ref(target), query: { new_version: version } } })),
  test: (target: string, parameters: JsonObject) =>
    data(client.POST('/tools/{ref}/test', { params: ref(target), body: { parameters } as never })),
};

export const bundles = {
  put: (slug: string, fields: { display_name?: string; description?: string; enabled?: boolean }) =>
    data(client.PUT('/tools/bundles/{id}', { params: id(slug), body: { slug, ...fields } })),
  enable: (slug: string, enabled: boolean) => data(client.PATCH('/tools/bundles/{id}', { params: id(slug), body: { enabled } })),
  remove: (slug: string) => data(client.DELETE('/tools/bundles/{id}', { params: id(slug) })),
  publish: (slug: string, dryRun: boolean) =>
    data(client.POST('/tools/bundles/{id}/publish', { params: { ...id(slug), query: { dry_run: dryRun } } })),
};

export const approvals = {
  approve: (approval: string, options: { args?: JsonObject; remember?: { scope: RememberScope; any_args?: boolean } }) =>
    data(client.POST('/approvals/{id}/approve', { params: id(approval), body: options as never })),
  deny: (approval: string, reason?: string) =>
    data(client.POST('/approvals/{id}/deny', { params: id(approval), body: { reason: reason ?? null } })),
  forget: (grant: string) => data(client.DELETE('/approval-grants/{id}', { params: id(grant) })),
};

export const servers = {
  add: (server: NewServer) => data(client.POST('/mcp-servers', { body: server })),
  patch: (server: string, patch: ServerPatch) => data(client.PATCH('/mcp-servers/{id}', { params: id(server), body: patch })),
  refresh: (server: string) => data(client.POST('/mcp-servers/{id}/refresh', { params: id(server) })),
  remove: (server: string) => data(client.DELETE('/mcp-servers/{id}', { params: id(server) })),
  accept: (server: string, names: string[]) =>
    data(client.POST('/mcp-servers/{id}/accept', { params: id(server), body: { tools: names } })),
  reject: (server: string, names: string[]) =>
    data(client.POST('/mcp-servers/{id}/reject', { params: id(server), body: { tools: names } })),
  review: (server: string) => data(client.POST('/mcp-servers/{id}/review', { params: id(server) })),
  login: (server: string) => data(client.POST('/mcp-servers/{id}/login', { params: id(server) })),
  logout: (server: string) => data(client.POST('/mcp-servers/{id}/logout', { params: id(server) })),
};

export const policy = {
  put: (rules: PolicyRule[], scope: 'tenant' | 'platform', dryRun: boolean) =>
    data(
      client.PUT('/policy', {
        params: { query: { ...(scope === 'platform' ? { scope: 'platform' as never } : {}), dry_run: dryRun } },
        body: { rules } as never,
      }),
    ),
  putText: (yaml: string, scope: 'tenant' | 'platform', dryRun: boolean) =>
    request<{ rules: PolicyRule[] }>(`/api/policy?dry_run=${dryRun}${scope === 'platform' ? '&scope=platform' : ''}`, {
      method: 'PUT', text: yaml, contentType: 'application/yaml',
    }),
  explain: (question: ExplainBody) => data(client.POST('/policy/explain', { body: question })),
};

export const credentials = {
  put: (name: string, fields: Partial<CredentialBody>) =>
    data(client.PUT('/credentials/{name}', { params: { path: { name } }, body: fields as CredentialBody })),
  /** `force` deletes it although tools refer to it. */
  remove: (name: string, force: boolean) => data(client.DELETE('/credentials/{name}', { params: { path: { name }, query: { force } } })),
};

const provider = (value: string) => ({ path: { provider: value } });

export const accounts = {
  putKey: (name: string, key: string) => data(client.PUT('/accounts/{provider}', { params: provider(name), body: { api_key: key } })),
  /** Begins a login; the person opens the address. */
  connect: (name: string) => data(client.POST('/accounts/{provider}/connect', { params: provider(name) })),
  revoke: (name: string) => data(client.DELETE('/accounts/{provider}', { params: provider(name) })),
  /** The account of a person, for admins. */
  revokeOf: (name: string, person: string) => data(client.DELETE('/accounts/{provider}', { params: { ...provider(name), query: { person } } })),
};

export const sessions = {
  /** An own one, or one of a person. */
  end: (session: string, person?: string) => data(client.DELETE('/sessions/{id}', { params: { ...id(session), query: person ? { person } : {} } })),
};

export const accountProviders = {
  put: (name: string, definition: AccountProviderBody) => data(client.PUT('/account-providers/{name}', { params: { path: { name } }, body: definition })),
  remove: (name: string) => data(client.DELETE('/account-providers/{name}', { params: { path: { name } } })),
};

export const tokens = {
  create: (token: Partial<NewToken> & { name: string }) => data(client.POST('/tokens', { body: token as NewToken })),
  rotate: (token: string, grace?: string) =>
    data(client.POST('/tokens/{id}/rotate', { params: id(token), body: { grace: grace ?? null, expires_in: null } })),
  limit: (token: string, rate: RateLimit | null) =>
    data(client.PATCH('/tokens/{id}', { params: id(token), body: { rate_limit: rate } })),
  remove: (token: string) => data(client.DELETE('/tokens/{id}', { params: id(token) })),
};

export const webhooks = {
  create: (webhook: NewWebhook) => data(client.POST('/webhooks', { body: webhook })),
  patch: (webhook: string, patch: Partial<WebhookPatch>) =>
    data(client.PATCH('/webhooks/{id}', { params: id(webhook), body: patch as WebhookPatch })),
  remove: (webhook: string) => data(client.DELETE('/webhooks/{id}', { params: id(webhook) })),
  test: (webhook: string) => data(client.POST('/webhooks/{id}/test', { params: id(webhook) })),
  redeliver: (webhook: string, delivery: string) =>
    data(client.POST('/webhooks/{id}/deliveries/{delivery_id}/redeliver', { params: { path: { id: webhook, delivery_id: delivery } } })),
};

export const tenants = {
  create: (tenant: string, name?: string) => data(client.POST('/tenants', { body: { id: tenant, ...(name ? { name } : {}) } })),
  patch: (tenant: string, patch: TenantPatch) => data(client.PATCH('/tenants/{id}', { params: id(tenant), body: patch })),
  remove: (tenant: string) => data(client.DELETE('/tenants/{id}', { params: { ...id(tenant), query: { confirm: tenant } } })),
};

export const imports = {
  api: (options: Partial<ImportBody>) => data(client.POST('/import/api', { body: options as ImportBody })),
  curl: (options: Partial<CurlImport> & { command: string }) => data(client.POST('/import/curl', { body: options as CurlImport })),
  tools: (options: Partial<ToolsImport> & { text: string }) => data(client.POST('/import/tools', { body: options as ToolsImport })),
  mcp: (options: Partial<McpImport> & { config: string }) => data(client.POST('/import/mcp', { body: options as McpImport })),
};

const named = (target: string, name: string) => ({ path: { ref: target, name } });

export const examples = {
  put: (target: string, { name, ...example }: ToolExample) =>
    data(client.PUT('/tools/{ref}/examples/{name}', { params: named(target, name), body: example as never })),
  remove: (target: string, name: string) => data(client.DELETE('/tools/{ref}/examples/{name}', { params: named(target, name) })),
  run: (target: string) => data(client.POST('/tools/{ref}/examples/run', { params: ref(target) })),
};

export const account = {
  loginLink: () => data(client.POST('/login-links')),
  logout: async () => {
    // The answer leads to the login page, or by way of the logout page of the issuer.
    const { url } = await raw('/logout', { method: 'POST' });
    window.location.assign(url);
  },
};

/** Calls a tool and returns the outcome, without following its events. */
export async function invoke(target: string, args: JsonObject) {
  const answer = await raw(`/api/tools/${encodeURIComponent(target)}/invoke`, { method: 'POST', json: { args } });
  if (answer.status >= 400) throw new ApiError(answer.status, answer.body as Partial<ErrorBody>, `The server answered ${answer.status}.`);
  return answer.body;
}

export { body };
