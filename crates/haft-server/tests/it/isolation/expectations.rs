//! What another tenant gets from each route, and the values that requests are filled with.

use serde_json::{Value, json};

use super::first_tenant::{
    AGENT, ARTIFACT, BROKEN_TOOL, BUNDLE, CHAT, CONFIRMED_TOOL, CREDENTIAL, EMAIL, EXAMPLE, FILE,
    FirstTenant, GROUP, HTTP_TOOL, MCP_SERVER, OTHER_TENANT, PERSON, PIPELINE, PROVIDER, SERVICE_ACCOUNT,
    TAG, TOKEN, TOOL, TOOLSET, WORKSPACE,
};
use crate::harness::function_tool;

/// What an admin of another tenant gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Expected {
    /// 404, with the same words as for something that does not exist.
    NotFound,
    /// 403: platform admins only.
    Forbidden,
    /// 200 with this list, and nothing in it.
    Empty(&'static str),
    /// 200 with this list, and only built-in tools or bundles in it.
    BuiltIn(&'static str),
    /// One of these statuses; the response is about the other tenant itself, or about no tenant.
    Own(&'static [u16]),
}

use Expected::{BuiltIn, Empty, Forbidden, NotFound, Own};

const TOOL_PATH: &str = "/tools/bundles/{id}/tools/{name}/version/{version}";
const TOOL_CALL: &str = "/tools/bundles/{id}/tools/{name}/version/{version}/invoke";

/// Every operation of the OpenAPI document.
pub(super) const EXPECTATIONS: &[(&str, &str, Expected)] = &[
    ("get", "/tools", BuiltIn("tools")),
    ("post", "/tools", Own(&[201])),
    ("get", "/tools/search", BuiltIn("tools")),
    ("get", "/tools/builtins/templates", BuiltIn("tools")),
    ("get", "/tools/definitions/all", Own(&[200])),
    ("get", "/tools/{ref}", NotFound),
    ("put", "/tools/{ref}", NotFound),
    ("patch", "/tools/{ref}", NotFound),
    ("delete", "/tools/{ref}", NotFound),
    ("get", "/tools/{ref}/source", NotFound),
    ("post", "/tools/{ref}/undelete", NotFound),
    ("get", "/tools/{ref}/definition", NotFound),
    ("post", "/tools/{ref}/publish", NotFound),
    ("post", "/tools/{ref}/deprecate", NotFound),
    ("post", "/tools/{ref}/version", NotFound),
    ("get", "/tools/{ref}/usage", NotFound),
    ("get", "/tools/{ref}/examples", NotFound),
    ("put", "/tools/{ref}/examples/{name}", NotFound),
    ("delete", "/tools/{ref}/examples/{name}", NotFound),
    ("post", "/tools/{ref}/examples/run", NotFound),
    ("get", "/tools/{ref}/revisions", NotFound),
    ("post", "/tools/{ref}/revisions/{n}/restore", NotFound),
    ("get", "/tools/{ref}/diff", NotFound),
    ("post", "/tools/{ref}/invoke", NotFound),
    ("post", "/tools/{ref}/test", NotFound),
    ("post", "/tools/{ref}/validate", NotFound),
    ("get", "/tools/bundles", BuiltIn("bundles")),
    ("get", "/tools/bundles/{id}", NotFound),
    // Slugs are per tenant, so this writes an own bundle. An id is unique on the server: 409.
    ("put", "/tools/bundles/{id}", Own(&[200, 201, 409])),
    ("patch", "/tools/bundles/{id}", NotFound),
    ("delete", "/tools/bundles/{id}", NotFound),
    ("post", "/tools/bundles/{id}/publish", NotFound),
    ("get", "/tools/bundles/{id}/export", NotFound),
    ("get", TOOL_PATH, NotFound),
    // In the own bundle of the same slug; the tool may exist there already. By the id of the other bundle: 404.
    ("put", TOOL_PATH, Own(&[201, 404, 409])),
    ("patch", TOOL_PATH, NotFound),
    ("delete", TOOL_PATH, NotFound),
    ("post", TOOL_CALL, NotFound),
    ("get", "/calls", Empty("calls")),
    // `call_counts.rs` compares the counts of two tenants.
    ("get", "/calls/histogram", Own(&[200])),
    ("get", "/calls/{id}", NotFound),
    ("get", "/calls/{id}/events", NotFound),
    ("post", "/calls/{id}/cancel", NotFound),
    ("get", "/calls/{id}/render", NotFound),
    ("get", "/calls/{id}/result", NotFound),
    ("get", "/approvals", Empty("approvals")),
    ("get", "/approvals/{id}", NotFound),
    ("post", "/approvals/{id}/approve", NotFound),
    ("post", "/approvals/{id}/deny", NotFound),
    ("get", "/approval-grants", Empty("grants")),
    ("delete", "/approval-grants/{id}", NotFound),
    ("get", "/chats", Empty("chats")),
    ("post", "/chats", Own(&[201])),
    ("get", "/chats/{id}", NotFound),
    ("patch", "/chats/{id}", NotFound),
    ("delete", "/chats/{id}", NotFound),
    ("get", "/chats/{id}/messages", NotFound),
    ("post", "/chats/{id}/messages", NotFound),
    ("post", "/chats/{id}/answer", NotFound),
    ("post", "/chats/{id}/stop", NotFound),
    ("get", "/chats/{id}/export", NotFound),
    ("get", "/chats/{id}/messages/{message_id}/manifest", NotFound),
    ("get", "/chats/{id}/workspace/files", NotFound),
    ("get", "/chats/{id}/workspace/files/{path}", NotFound),
    ("put", "/chats/{id}/workspace/files/{path}", NotFound),
    ("delete", "/chats/{id}/workspace/files/{path}", NotFound),
    ("get", "/chats/{id}/workspace/archive", NotFound),
    ("get", "/chats/{id}/workspace/manifests", NotFound),
    ("get", "/chats/{id}/workspace/diff", NotFound),
    ("get", "/chats/{id}/workspace/changes", NotFound),
    ("post", "/chats/{id}/workspace/restore", NotFound),
    ("get", "/agents", Empty("agents")),
    // Slugs are per tenant.
    ("post", "/agents", Own(&[201])),
    ("post", "/agents/check", Own(&[200])),
    ("get", "/agents/{ref}", NotFound),
    ("put", "/agents/{ref}", NotFound),
    ("patch", "/agents/{ref}", NotFound),
    ("delete", "/agents/{ref}", NotFound),
    ("post", "/agents/{ref}/undelete", NotFound),
    ("get", "/agents/{ref}/usage", NotFound),
    ("get", "/agents/{ref}/tools", NotFound),
    ("post", "/agents/{ref}/publish", NotFound),
    ("post", "/agents/{ref}/deprecate", NotFound),
    ("get", "/agents/{ref}/diff", NotFound),
    ("get", "/agents/{ref}/revisions", NotFound),
    ("get", "/agents/{ref}/revisions/{n}", NotFound),
    ("post", "/agents/{ref}/revisions/{n}/restore", NotFound),
    ("post", "/agents/{ref}/runs", NotFound),
    ("get", "/models", Own(&[200])),
    ("get", "/runs", Empty("runs")),
    ("get", "/runs/{id}", NotFound),
    ("get", "/runs/{id}/steps", NotFound),
    ("get", "/runs/{id}/events", NotFound),
    ("post", "/runs/{id}/cancel", NotFound),
    ("get", "/pipelines", Empty("pipelines")),
    // Slugs are per tenant.
    ("post", "/pipelines", Own(&[201])),
    ("get", "/pipelines/{ref}", NotFound),
    ("put", "/pipelines/{ref}", NotFound),
    ("patch", "/pipelines/{ref}", NotFound),
    ("delete", "/pipelines/{ref}", NotFound),
    ("post", "/pipelines/{ref}/undelete", NotFound),
    ("get", "/pipelines/{ref}/usage", NotFound),
    ("post", "/pipelines/{ref}/deprecate", NotFound),
    ("get", "/pipelines/{ref}/diff", NotFound),
    ("get", "/pipelines/{ref}/revisions", NotFound),
    ("get", "/pipelines/{ref}/revisions/{n}", NotFound),
    ("post", "/pipelines/{ref}/revisions/{n}/restore", NotFound),
    ("post", "/pipelines/{ref}/publish", NotFound),
    ("post", "/pipelines/{ref}/reingest", NotFound),
    ("get", "/pipelines/{ref}/ingests", NotFound),
    ("post", "/pipelines/{ref}/query", NotFound),
    ("get", "/pipelines/{ref}/documents", NotFound),
    ("post", "/pipelines/{ref}/documents", NotFound),
    ("get", "/pipelines/{ref}/documents/{id}", NotFound),
    ("delete", "/pipelines/{ref}/documents/{id}", NotFound),
    ("get", "/code-artifacts", Empty("artifacts")),
    // Slugs are per tenant.
    ("post", "/code-artifacts", Own(&[201])),
    ("get", "/code-artifacts/{id}", NotFound),
    ("put", "/code-artifacts/{id}", NotFound),
    ("patch", "/code-artifacts/{id}", NotFound),
    ("delete", "/code-artifacts/{id}", NotFound),
    ("post", "/code-artifacts/{id}/undelete", NotFound),
    ("get", "/code-artifacts/{id}/usage", NotFound),
    ("post", "/code-artifacts/{id}/publish", NotFound),
    ("post", "/code-artifacts/{id}/deprecate", NotFound),
    ("get", "/code-artifacts/{id}/diff", NotFound),
    ("get", "/code-artifacts/{id}/versions", NotFound),
    ("get", "/code-artifacts/{id}/versions/{number}", NotFound),
    ("post", "/code-artifacts/{id}/versions/{number}/restore", NotFound),
    ("get", "/toolsets", Empty("toolsets")),
    // A package of its own; ids are per tenant.
    ("post", "/toolsets", Own(&[400])),
    ("get", "/toolsets/{id}", NotFound),
    ("delete", "/toolsets/{id}", NotFound),
    ("post", "/toolsets/{id}/enable", NotFound),
    ("post", "/toolsets/{id}/rollback", NotFound),
    ("post", "/toolsets/{id}/update", NotFound),
    ("get", "/toolsets/{id}/export", NotFound),
    ("get", "/toolsets/{id}/files/{path}", NotFound),
    // The body is not a folder; `apply.rs` applies one as two tenants.
    ("post", "/apply", Own(&[400])),
    ("get", "/export", Own(&[200])),
    ("get", "/workspaces", Empty("workspaces")),
    ("delete", "/workspaces/{name}", NotFound),
    ("get", "/workspaces/{name}/files", NotFound),
    ("get", "/workspaces/{name}/files/{path}", NotFound),
    // Names are per tenant, so this creates an own workspace.
    ("put", "/workspaces/{name}/files/{path}", Own(&[200])),
    ("delete", "/workspaces/{name}/files/{path}", NotFound),
    ("get", "/workspaces/{name}/archive", NotFound),
    ("get", "/workspaces/{name}/manifests", NotFound),
    ("get", "/workspaces/{name}/diff", NotFound),
    ("get", "/workspaces/{name}/changes", NotFound),
    ("post", "/workspaces/{name}/restore", NotFound),
    ("get", "/credentials", Empty("credentials")),
    ("get", "/credentials/{name}", NotFound),
    ("put", "/credentials/{name}", Own(&[200])),
    ("delete", "/credentials/{name}", NotFound),
    // The providers of the other tenant, which has none.
    ("get", "/accounts", Own(&[200])),
    ("put", "/accounts/{provider}", NotFound),
    ("delete", "/accounts/{provider}", NotFound),
    ("post", "/accounts/{provider}/connect", NotFound),
    ("get", "/accounts/{provider}/logins/{id}", Own(&[403, 404])),
    // Needs the state of a login, which only its person knows.
    ("get", "/accounts/callback", Own(&[400])),
    ("get", "/account-providers", Own(&[200])),
    ("put", "/account-providers/{name}", Own(&[200])),
    ("delete", "/account-providers/{name}", NotFound),
    ("get", "/account-providers/{name}/accounts", Own(&[200, 404])),
    ("get", "/tenants", Forbidden),
    ("post", "/tenants", Forbidden),
    ("get", "/tenants/{id}", Forbidden),
    ("patch", "/tenants/{id}", Forbidden),
    ("delete", "/tenants/{id}", Forbidden),
    ("get", "/sessions", Own(&[200])),
    ("delete", "/sessions/{id}", NotFound),
    ("get", "/tokens", Own(&[200])),
    ("post", "/tokens", Own(&[201])),
    ("get", "/tokens/{id}", NotFound),
    ("patch", "/tokens/{id}", NotFound),
    ("delete", "/tokens/{id}", NotFound),
    ("post", "/tokens/{id}/rotate", NotFound),
    ("get", "/people", Empty("people")),
    ("post", "/people", Own(&[201])),
    ("get", "/people/{id}", NotFound),
    ("patch", "/people/{id}", NotFound),
    ("delete", "/people/{id}", NotFound),
    ("post", "/people/{id}/invitation", NotFound),
    ("post", "/people/{id}/hand-over", NotFound),
    ("get", "/service-accounts", Empty("service_accounts")),
    ("post", "/service-accounts", Own(&[201])),
    ("get", "/service-accounts/{id}", NotFound),
    ("patch", "/service-accounts/{id}", NotFound),
    ("delete", "/service-accounts/{id}", NotFound),
    ("get", "/groups", Empty("groups")),
    ("post", "/groups", Own(&[201])),
    ("get", "/groups/{id}", NotFound),
    ("patch", "/groups/{id}", NotFound),
    ("delete", "/groups/{id}", NotFound),
    ("get", "/applications", Empty("applications")),
    ("get", "/applications/{id}", NotFound),
    ("delete", "/applications/{id}", NotFound),
    ("get", "/application-clients", Empty("clients")),
    ("post", "/application-clients", Own(&[201])),
    ("delete", "/application-clients/{id}", NotFound),
    ("post", "/login-links", Own(&[201])),
    ("get", "/session", Own(&[200])),
    ("post", "/key/rotate", Forbidden),
    ("get", "/webhooks", Empty("webhooks")),
    ("post", "/webhooks", Own(&[201])),
    ("get", "/webhooks/{id}", NotFound),
    ("patch", "/webhooks/{id}", NotFound),
    ("delete", "/webhooks/{id}", NotFound),
    ("get", "/webhooks/{id}/deliveries", NotFound),
    ("post", "/webhooks/{id}/deliveries/{delivery_id}/redeliver", NotFound),
    ("post", "/webhooks/{id}/test", NotFound),
    ("get", "/policy", Empty("rules")),
    ("put", "/policy", Own(&[200])),
    ("post", "/policy/explain", NotFound),
    ("get", "/sign-on", Forbidden),
    ("post", "/sign-on/test", Forbidden),
    ("post", "/import/api", Own(&[200])),
    ("post", "/import/openapi", Own(&[200])),
    ("post", "/import/registry", Own(&[200])),
    ("post", "/import/curl", Own(&[200])),
    ("post", "/import/tools", Own(&[200])),
    ("post", "/import/mcp", Own(&[200])),
    ("get", "/mcp-servers", Empty("mcp_servers")),
    ("post", "/mcp-servers", Own(&[201])),
    ("get", "/mcp-servers/{id}", NotFound),
    ("patch", "/mcp-servers/{id}", NotFound),
    ("delete", "/mcp-servers/{id}", NotFound),
    ("post", "/mcp-servers/{id}/refresh", NotFound),
    ("get", "/mcp-servers/{id}/changes", NotFound),
    ("get", "/mcp-servers/{id}/findings", NotFound),
    ("post", "/mcp-servers/{id}/review", NotFound),
    ("post", "/mcp-servers/{id}/accept", NotFound),
    ("post", "/mcp-servers/{id}/reject", NotFound),
    ("post", "/mcp-servers/{id}/login", NotFound),
    ("post", "/mcp-servers/{id}/logout", NotFound),
    // Needs the state of a login, which only its client knows.
    ("get", "/mcp-servers/oauth/callback", Own(&[400])),
    ("get", "/audit", Own(&[200])),
    ("get", "/limits", Own(&[200])),
    ("get", "/stats", Own(&[200])),
    ("get", "/settings", Forbidden),
    ("get", "/doctor", Own(&[200])),
    // A stream: only its first event is read here. `events.rs` compares the events of two tenants.
    ("get", "/events", Own(&[200])),
    ("get", "/healthz", Own(&[200])),
    ("get", "/readyz", Own(&[200])),
    ("get", "/metrics", Forbidden),
    ("get", "/login", Own(&[200])),
    ("post", "/login", Own(&[400])),
    ("post", "/logout", Own(&[200])),
];

/// Returns the expectation of an operation.
pub(super) fn expected(method: &str, path: &str) -> Expected {
    let found = EXPECTATIONS.iter().find(|entry| (entry.0, entry.1) == (method, path));
    let Some((_, _, expected)) = found else {
        panic!(
            "`{method} {path}` is not covered: add what another tenant gets from it to `EXPECTATIONS` in \
             `tests/it/isolation/expectations.rs`, and what the first tenant has of it to `first_tenant.rs`"
        );
    };
    *expected
}

/// Returns the values of a path parameter that mean things of the first tenant.
pub(super) fn path_values(first: &FirstTenant, path: &str, parameter: &str) -> Vec<String> {
    let (before, _) = path.split_once(&format!("/{{{parameter}}}")).unwrap();
    let collection = before.rsplit('/').next().unwrap();
    let texts = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    match (collection, parameter) {
        ("tools", "ref") => texts(&[
            &first.tool,
            TOOL,
            &format!("{BUNDLE}:{TOOL}"),
            &format!("{BUNDLE}:{TOOL}@1.0.0"),
            HTTP_TOOL,
            CONFIRMED_TOOL,
            BROKEN_TOOL,
        ]),
        ("bundles", "id") => texts(&[&first.bundle, BUNDLE]),
        ("tools", "name") => texts(&[TOOL]),
        ("examples", "name") => texts(&[EXAMPLE]),
        ("version", "version") => texts(&["1.0.0"]),
        ("revisions", "n") | ("versions", "number") => texts(&["1"]),
        ("calls", "id") => first.calls.clone(),
        ("approvals", "id") => texts(&[&first.approval]),
        ("approval-grants", "id") => texts(&[&first.grant]),
        // There is none: it names nobody's login.
        ("logins", "id") => texts(&["019a8f50-b7b6-7a01-9a05-a22a6e0af101"]),
        ("sessions", "id") => texts(&["9f86d081884c7d659a2feaa0c55ad015"]),
        ("tokens", "id") => texts(&[&first.token, &first.application]),
        ("applications", "id") => texts(&[&first.application, &first.token]),
        ("application-clients", "id") => texts(&[&first.client]),
        ("people", "id") => texts(&[&first.person, PERSON, EMAIL]),
        ("service-accounts", "id") => texts(&[&first.service_account, SERVICE_ACCOUNT]),
        ("groups", "id") => texts(&[&first.group, GROUP]),
        ("tenants", "id") => texts(&["default", OTHER_TENANT]),
        ("credentials", "name") => texts(&[CREDENTIAL]),
        ("account-providers", "name") | ("accounts", "provider") => texts(&[PROVIDER]),
        ("chats", "id") => texts(&[&first.chat]),
        ("messages", "message_id") => texts(&[&first.message]),
        ("agents", "ref") => texts(&[&first.agent, AGENT]),
        ("runs", "id") => texts(&[&first.run]),
        ("pipelines", "ref") => texts(&[&first.pipeline, PIPELINE]),
        ("documents", "id") => texts(&[&first.document]),
        ("code-artifacts", "id") => texts(&[&first.artifact, ARTIFACT]),
        ("workspaces", "name") => texts(&[WORKSPACE]),
        ("toolsets", "id") => texts(&[TOOLSET]),
        ("files", "path") => texts(&[FILE]),
        ("webhooks", "id") => texts(&[&first.webhook]),
        ("deliveries", "delivery_id") => texts(&[&first.delivery]),
        ("mcp-servers", "id") => texts(&[MCP_SERVER]),
        _ => panic!(
            "no value for `{{{parameter}}}` of `{path}`: add what the first tenant has to `path_values` in \
             `tests/it/isolation/expectations.rs`"
        ),
    }
}

/// Query parameters that name nothing of a tenant.
const PLAIN_PARAMETERS: &[&str] = &[
    "after",
    "allow_unsandboxed",
    "async",
    "base_url",
    "buckets",
    "category",
    "code",
    "decision",
    "delete_missing",
    "deleted",
    "download",
    "dry_run",
    "error",
    "error_code",
    "error_description",
    "exclude",
    "fields",
    "filter",
    "force",
    "format",
    "from",
    "implementation_type",
    "include",
    "include_builtin_copies",
    "include_disabled",
    "invitation",
    "iss",
    "keep_backup",
    "kind",
    "limit",
    "metadata",
    "mode",
    "name",
    "next",
    "outcome",
    "page_size",
    "page_token",
    "paths",
    "plan",
    "pointer",
    "provider_key",
    "prune",
    "publish",
    "recommended_page_size",
    "repeated",
    "result",
    "runtime",
    "shared",
    "since",
    "skip",
    "source",
    "state",
    "status",
    "strict",
    "tenant_id",
    "to",
    "tool_type",
    "topics",
    "until",
];

/// Returns the values of a query parameter that mean things of the first tenant.
pub(super) fn query_values(first: &FirstTenant, path: &str, parameter: &str) -> Vec<String> {
    let texts = |values: &[&str]| values.iter().map(|&value| value.to_owned()).collect();
    match parameter {
        "q" | "text" => texts(&[
            TOOL,
            "opal-second-description",
            "topaz-default",
            "ruby-argument",
            AGENT,
            "gneiss-message",
        ]),
        "tool" | "names" => texts(&[&first.tool, TOOL]),
        "tag" | "tags" => texts(&[TAG]),
        "bundle" | "bundle_ids" => texts(&[&first.bundle, BUNDLE]),
        "caller" | "actor" => texts(&[TOKEN, &first.token, PERSON, &first.person, "local"]),
        "chat_id" if path == "/runs" => texts(&[&first.chat]),
        "chat_id" => texts(&[CHAT]),
        "parent_id" if path == "/runs" => texts(&[&first.run]),
        "parent_id" => first.calls.clone(),
        "agent" => texts(&[&first.agent, AGENT]),
        "person" => texts(&[&first.person]),
        "manifest" => texts(&[&first.manifest]),
        "from" | "to" if path.ends_with("/diff") && !path.starts_with("/tools") => texts(&[&first.manifest]),
        "path" => texts(&[FILE]),
        "surface" => texts(&["rest", "test"]),
        "select" => texts(&[TOOL]),
        "action" => texts(&["tool.create", "policy.put"]),
        "target" => texts(&[TOOL, "default"]),
        "rule" => texts(&["pearl-rule"]),
        "tenant" => texts(&["default", OTHER_TENANT]),
        "confirm" => texts(&["default"]),
        "scope" => texts(&["platform"]),
        "new_version" => texts(&["2.0.0"]),
        _ if PLAIN_PARAMETERS.contains(&parameter) => Vec::new(),
        _ => panic!(
            "the query parameter `{parameter}` of `{path}` is not covered: add it to `query_values`, or to \
             `PLAIN_PARAMETERS` if it names nothing of a tenant, in `tests/it/isolation/expectations.rs`"
        ),
    }
}

/// Returns the body of a request that changes something.
pub(super) fn body(first: &FirstTenant, method: &str, path: &str) -> Value {
    match (method, path) {
        ("get" | "delete", _) | ("post", "/login" | "/logout") => Value::Null,
        ("post", "/tools") | ("put", TOOL_PATH) => function_tool(TOOL, "echo"),
        ("put", "/tools/{ref}") => {
            json!({"description": "changed", "implementation": {"type": "function", "function": "echo"}})
        }
        ("put", "/tools/bundles/{id}") => json!({"slug": BUNDLE, "description": "changed"}),
        ("patch", path) if path.starts_with("/tools") => json!({"enabled": false}),
        ("patch", "/mcp-servers/{id}") => json!({"policy": "deny"}),
        ("post", "/webhooks") => json!({"url": "http://127.0.0.1:9/own"}),
        ("patch", "/webhooks/{id}" | "/agents/{ref}" | "/pipelines/{ref}" | "/code-artifacts/{id}") => {
            json!({"enabled": false})
        }
        ("patch", "/tenants/{id}" | "/people/{id}" | "/service-accounts/{id}" | "/groups/{id}") => {
            json!({"name": "changed"})
        }
        ("post", "/tenants") => json!({"id": "another"}),
        ("put", "/credentials/{name}") => json!({"value": "changed"}),
        ("put", "/accounts/{provider}") => json!({"api_key": "changed"}),
        ("put", "/account-providers/{name}") => json!({"help": "changed"}),
        ("patch", "/tokens/{id}") => json!({"rate_limit": null}),
        ("post", "/application-clients") => {
            json!({"name": "own", "redirect_uris": ["https://own.example/cb"]})
        }
        ("post", "/tokens") => json!({"name": TOKEN, "role": "admin"}),
        ("post", "/people" | "/service-accounts" | "/groups") => json!({"name": "own"}),
        ("post", "/people/{id}/hand-over") => json!({"to": EMAIL}),
        ("patch", "/chats/{id}") => json!({"title": "changed"}),
        ("post", "/chats/{id}/messages") => json!({"content": "changed"}),
        ("post", "/agents" | "/agents/check") | ("put", "/agents/{ref}") => {
            json!({"slug": AGENT, "model": "scripted", "instructions": "changed"})
        }
        ("post", "/agents/{ref}/runs") => json!({"input": "changed"}),
        ("post", "/pipelines") => json!({"slug": PIPELINE}),
        ("post", "/pipelines/{ref}/query") => json!({"query": "siltstone-text"}),
        ("post", "/pipelines/{ref}/documents") => json!({"name": "x.md", "text": "changed"}),
        ("post", "/code-artifacts") | ("put", "/code-artifacts/{id}") => {
            json!({"slug": ARTIFACT, "runtime": "bash", "source": "echo changed"})
        }
        ("post", "/chats/{id}/workspace/restore" | "/workspaces/{name}/restore") => {
            json!({"manifest_id": first.manifest})
        }
        ("put", "/policy") => json!({"rules": []}),
        ("post", "/sign-on/test") => json!({"claims": {"sub": EMAIL}}),
        ("post", "/policy/explain") => json!({"tool": first.tool}),
        ("post", "/mcp-servers") => json!({"id": MCP_SERVER, "url": "http://127.0.0.1:9/", "enabled": false}),
        ("post", "/import/api" | "/import/openapi") => json!({
            "bundle": BUNDLE,
            "delete_missing": true,
            "document": {
                "openapi": "3.0.3",
                "info": {"title": "import", "version": "1"},
                "servers": [{"url": "http://127.0.0.1:9"}],
                "paths": {"/x": {"get": {"operationId": "imported", "responses": {"200": {"description": "ok"}}}}},
            },
        }),
        ("put", "/tools/{ref}/examples/{name}") => json!({"args": {}}),
        ("post", "/import/curl") => json!({"command": "curl http://127.0.0.1:9/imported", "bundle": BUNDLE}),
        ("post", "/import/tools") => json!({"text": function_tool("imported-text", "echo").to_string()}),
        ("post", "/import/mcp") => json!({"config": {"mcpServers": {}}}),
        ("post", "/import/registry") => {
            json!({"id": "1", "slug": "imported-row", "implementation_type": "function",
                "implementation_config": {"function_name": "echo"}})
        }
        _ => json!({}),
    }
}
