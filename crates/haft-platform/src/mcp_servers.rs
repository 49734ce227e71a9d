//! MCP servers whose tools are used: adding, changing and deleting them, and reviewing their changed tools.

use haft_core::mcp::{McpServer, Transport, mcp_provider};
use haft_core::outcome::ErrorCode;
use haft_core::redact;
use haft_core::token::Role;
use haft_store::PendingToolChange;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::mcp_definition::{
    check_credentials, check_response_limit, check_start_timeout, check_timeout, parse_credentials,
    parse_policy,
};

/// Warns of values that look like credentials in clear, which other users of the machine may see.
pub fn plain_credentials(server: &McpServer) -> Vec<String> {
    let warning = |field: String| {
        format!(
            "`{field}` seems to contain a credential; store it with `haft secret set NAME` and refer to it as `${{NAME}}`"
        )
    };
    redact::redact_transport(&server.transport).suspicious.into_iter().map(warning).collect()
}

/// Package runners: they download the program before they start it.
const DOWNLOADERS: [&str; 6] = ["npx", "uvx", "uv", "pipx", "bunx", "pnpx"];

/// Warns about a program that downloads packages when it starts but may not use the network.
pub fn missing_network(server: &McpServer) -> Option<String> {
    let Transport::Stdio(program) = &server.transport else { return None };
    let name = program.command.rsplit('/').next()?;
    (!program.network && DOWNLOADERS.contains(&name)).then(|| {
        format!(
            "`{name}` downloads packages, but the server may not use the network; set `network: true` (`haft mcp-server update {} --network`)",
            server.id
        )
    })
}

/// Returns all warnings about the definition of a server.
pub fn warnings(server: &McpServer) -> Vec<String> {
    let mut warnings = plain_credentials(server);
    warnings.extend(missing_network(server));
    warnings
}

/// Returns the changed tools with these names, or all of them.
async fn selected_changes(
    app: &Context,
    server: &McpServer,
    names: Option<&[String]>,
) -> Result<Vec<PendingToolChange>, ServiceError> {
    let mut changed = app.store().catalog().changed_mcp_tools(&server.tenant, &server.id).await?;
    let Some(names) = names else { return Ok(changed) };
    let has_name = |change: &PendingToolChange, name: &String| change.tool.spec.name.as_str() == name;
    if let Some(unknown) = names.iter().find(|name| !changed.iter().any(|change| has_name(change, name))) {
        return Err(ServiceError::not_found("changed tool", unknown));
    }
    changed.retain(|change| names.iter().any(|name| has_name(change, name)));
    Ok(changed)
}

/// Rejects changes to a server that the configuration declares: they would be lost at the next start.
fn require_undeclared(server: &McpServer) -> Result<(), ServiceError> {
    let Some(file) = &server.declared_in else { return Ok(()) };
    let message =
        format!("MCP server `{}` is declared in `{file}`; change it there and restart haft", server.id);
    Err(ServiceError::new(ErrorCode::ReadOnly, message))
}

/// Finds a server of the tenant.
pub async fn find(app: &Context, identity: &Identity, id: &str) -> Result<McpServer, ServiceError> {
    let all = app.store().catalog().mcp_servers().await?;
    let server = all.into_iter().find(|server| server.tenant == identity.tenant && server.id.as_str() == id);
    server.ok_or_else(|| ServiceError::not_found("MCP server", id))
}

/// Changes to a server; what is missing stays.
pub struct ServerChange {
    pub enabled: Option<bool>,
    pub accept_changes: Option<bool>,
    pub review_new_tools: Option<Option<bool>>,
    pub policy: Option<String>,
    /// Whose credentials its connections use.
    pub credentials: Option<String>,
    pub timeout_ms: Option<Option<u64>>,
    pub start_timeout_ms: Option<Option<u64>>,
    /// Whether the program may use the network.
    pub network: Option<bool>,
    pub max_response_bytes: Option<Option<u64>>,
}

/// Adds a server.
pub async fn create(
    app: &Context,
    identity: &Identity,
    server: McpServer,
) -> Result<McpServer, ServiceError> {
    if let Ok(known) = find(app, identity, server.id.as_str()).await {
        require_undeclared(&known)?;
        let message = format!("MCP server `{}` already exists; delete it first", server.id);
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    app.store().catalog().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    audit::note(identity, "mcp_server.create", server.id.as_str());
    Ok(server)
}

/// Finds a server that may be changed here.
pub async fn changeable(app: &Context, identity: &Identity, id: &str) -> Result<McpServer, ServiceError> {
    let server = find(app, identity, id).await?;
    require_undeclared(&server)?;
    Ok(server)
}

/// Changes a server.
pub async fn update(
    app: &Context,
    identity: &Identity,
    mut server: McpServer,
    change: &ServerChange,
) -> Result<McpServer, ServiceError> {
    if let Some(policy) = &change.policy {
        server.policy = parse_policy(Some(policy)).map_err(ServiceError::bad_request)?;
    }
    if let Some(credentials) = &change.credentials {
        server.credentials = parse_credentials(Some(credentials)).map_err(ServiceError::bad_request)?;
        check_credentials(&server).map_err(ServiceError::bad_request)?;
    }
    if let Some(timeout) = change.timeout_ms {
        server.timeout_ms = timeout.map(check_timeout).transpose().map_err(ServiceError::bad_request)?;
    }
    if let Some(timeout) = change.start_timeout_ms {
        server.start_timeout_ms =
            timeout.map(check_start_timeout).transpose().map_err(ServiceError::bad_request)?;
    }
    if let Some(network) = change.network {
        let Transport::Stdio(program) = &mut server.transport else {
            return Err(ServiceError::bad_request("`network` is a setting of programs; the server is a URL"));
        };
        program.network = network;
    }
    if let Some(limit) = change.max_response_bytes {
        server.max_response_bytes =
            limit.map(check_response_limit).transpose().map_err(ServiceError::bad_request)?;
    }
    server.enabled = change.enabled.unwrap_or(server.enabled);
    server.accept_changes = change.accept_changes.unwrap_or(server.accept_changes);
    server.review_new_tools = change.review_new_tools.unwrap_or(server.review_new_tools);
    server.modified_at = app.now();
    app.store().catalog().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    audit::note(identity, "mcp_server.update", server.id.as_str());
    Ok(server)
}

/// Deletes a server and its tools.
pub async fn delete(app: &Context, identity: &Identity, id: &str) -> Result<(), ServiceError> {
    identity.require(Role::Admin)?;
    let server = changeable(app, identity, id).await?;
    app.store().catalog().delete_mcp_server(identity.tenant.clone(), server.id).await?;
    app.mcp_clients().reload().await?;
    audit::note(identity, "mcp_server.delete", id);
    app.store().approvals().provider_deleted(identity.tenant.clone(), &mcp_provider(id)).await?;
    Ok(())
}

/// Loads the tools of a server again, connecting to it if needed.
pub async fn refresh(app: &Context, identity: &Identity, id: &str) -> Result<McpServer, ServiceError> {
    identity.require(Role::Editor)?;
    let server = find(app, identity, id).await?;
    let refreshed = app.mcp_clients().refresh(&server.tenant, &server.id).await;
    refreshed.map_err(ServiceError::outside_call)?;
    Ok(server)
}

/// Marks a server as reviewed: from now on, its new tools wait for review.
pub async fn review(app: &Context, identity: &Identity, id: &str) -> Result<McpServer, ServiceError> {
    identity.require(Role::Admin)?;
    let server = find(app, identity, id).await?;
    let server = app.store().catalog().review_mcp_server(server.tenant, server.id).await?;
    app.mcp_clients().reload().await?;
    audit::note(identity, "mcp_server.review", id);
    Ok(server)
}

/// Accepts new and changed tools of a server: those with these names, or all. Returns their names.
pub async fn accept(
    app: &Context,
    identity: &Identity,
    server: &McpServer,
    names: Option<&[String]>,
) -> Result<Vec<String>, ServiceError> {
    let mut accepted = Vec::new();
    for change in selected_changes(app, server, names).await? {
        app.store().catalog().accept_mcp_tool(change.tool.id).await?;
        accepted.push(change.tool.spec.name.to_string());
    }
    audit::note(identity, "mcp_server.accept", &format!("{}: {}", server.id, accepted.join(", ")));
    Ok(accepted)
}

/// Rejects new and changed tools of a server: those with these names, or all. Returns their names.
pub async fn reject(
    app: &Context,
    identity: &Identity,
    server: &McpServer,
    names: Option<&[String]>,
) -> Result<Vec<String>, ServiceError> {
    let mut rejected = Vec::new();
    for change in selected_changes(app, server, names).await? {
        app.store().catalog().reject_mcp_tool(change.tool.id).await?;
        rejected.push(change.tool.spec.name.to_string());
    }
    audit::note(identity, "mcp_server.reject", &format!("{}: {}", server.id, rejected.join(", ")));
    Ok(rejected)
}
