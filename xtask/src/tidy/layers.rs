//! Which modules of haft-server know HTTP. Domain code does not import handlers, axum or the OpenAPI generator, so that
//! every surface (REST, MCP, WebSocket, built-in tools) does the same thing in the same way.

use super::finding::Finding;

/// The sources of haft-server.
const SOURCES: &str = "crates/haft-server/src/";

/// Who may import handlers.
const ROUTES: &[&str] = &["routes/", "router.rs"];

/// The modules that are free of axum and utoipa: a folder, or a file. This list may only grow.
const FREE: &[&str] = &[
    "access.rs",
    "agents/bind.rs",
    "agents/check.rs",
    "agents/find.rs",
    "agents/manage.rs",
    "agents/names.rs",
    "agents/readiness.rs",
    "approvals.rs",
    "artifacts/",
    "audit.rs",
    "browser.rs",
    "built_ins/",
    "bundles.rs",
    "chats/",
    "credential_references.rs",
    "credentials.rs",
    "definition.rs",
    "error.rs",
    "execution_resources.rs",
    "identity.rs",
    "local_token.rs",
    "login.rs",
    "mcp_approvals.rs",
    "mcp_connections.rs",
    "mcp_resources.rs",
    "mcp_servers.rs",
    "metrics.rs",
    "metrics/",
    "permissions.rs",
    "planned_references.rs",
    "policy/",
    "python_packages.rs",
    "query.rs",
    "rendering/",
    "request_id.rs",
    "results.rs",
    "retrieval/",
    "runs/agent_call.rs",
    "runs/claim.rs",
    "runs/engine.rs",
    "runs/feed.rs",
    "runs/host.rs",
    "runs/start.rs",
    "runs/store.rs",
    "runs/watch.rs",
    "search.rs",
    "secrets.rs",
    "socket/requests.rs",
    "tenant_files.rs",
    "tenants.rs",
    "tokens/",
    "tools/",
    "viewer.rs",
    "warnings.rs",
    "webhooks/",
    "workspaces/archive.rs",
    "workspaces/edit.rs",
    "workspaces/host.rs",
    "workspaces/turns.rs",
];

/// Checks one file; `name` is its path from the workspace root.
pub(crate) fn check(name: &str, text: &str) -> Vec<Finding> {
    let Some(module) = name.strip_prefix(SOURCES) else { return Vec::new() };
    let (is_route, is_free) = (is_in(module, ROUTES), is_in(module, FREE));
    let mut findings = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        let found = |rule: &str, remedy| Finding {
            file: name.to_owned(),
            line: index + 1,
            rule: rule.to_owned(),
            remedy,
        };
        if !is_route && code.contains("crate::routes") {
            let remedy = "move what both need into the module of its domain, and call it from the handler";
            findings.push(found("domain code imports a handler", remedy));
        }
        if is_free && ["axum::", "utoipa::"].iter().any(|library| code.contains(library)) {
            let remedy =
                "leave requests, responses and their schemas to `routes/`, and plain HTTP types to `http`";
            findings.push(found("axum or utoipa in a module that is free of them", remedy));
        }
    }
    findings
}

fn is_in(module: &str, list: &[&str]) -> bool {
    list.iter().any(|entry| module == *entry || (entry.ends_with('/') && module.starts_with(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(module: &str, text: &str) -> Vec<usize> {
        check(&format!("{SOURCES}{module}"), text).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn only_routes_import_routes() {
        let text = "// crate::routes\nuse crate::routes::tools;\n";
        assert_eq!(rules("runs/host.rs", text), [2]);
        assert_eq!(rules("serve.rs", text), [2]);
        assert_eq!(rules("router.rs", text), [] as [usize; 0]);
        assert_eq!(rules("routes/tool.rs", text), [] as [usize; 0]);
        assert_eq!(check("crates/haft-cli/src/main.rs", text), []);
    }

    #[test]
    fn free_modules_stay_free() {
        let text = "use axum::Json;\nuse http::HeaderMap;\nuse utoipa::ToSchema;\n";
        assert_eq!(rules("tools/change.rs", text), [1, 3]);
        assert_eq!(rules("approvals.rs", text), [1, 3]);
        assert_eq!(rules("serve.rs", text), [] as [usize; 0]);
    }
}
