//! `/mcp-servers`: the MCP servers whose tools are used.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::implementation::Implementation;
use haft_core::mcp::{McpServer, Phase};
use haft_core::outcome::ErrorCode;
use haft_core::redact;
use haft_core::token::Role;
use haft_definition::mcp_import::READ_ONLY;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::mcp_definition::{NewServer, check_response_limit, check_timeout, parse_policy};
use crate::params::Params;
use crate::reply::{self, created, success};

/// Changes to a server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[expect(clippy::option_option, reason = "missing, null, or a number")]
pub(crate) struct ServerPatch {
    /// Whether haft connects to it.
    enabled: Option<bool>,
    /// Whether changed tools are accepted without review.
    accept_changes: Option<bool>,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    policy: Option<String>,
    /// The timeout of a call, in milliseconds; `null` restores the default.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<u64>)]
    timeout_ms: Option<Option<u64>>,
    /// The size limit of a result, in bytes; `null` restores the default.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<u64>)]
    max_response_bytes: Option<Option<u64>>,
}

/// Distinguishes `null` from a missing field.
#[expect(clippy::option_option, reason = "missing, null, or a number")]
fn nullable<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(value).map(Some)
}

/// The changed tools to accept.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct AcceptBody {
    /// The names of the tools; default: all changed tools.
    tools: Option<Vec<String>>,
}

/// List the MCP servers with their state.
#[utoipa::path(get, path = "/mcp-servers", tag = "mcp servers", responses((status = 200, body = Object)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("mcp_servers")?;
    let mut all = app.store().mcp_servers().await?;
    all.retain(|server| server.tenant == identity.tenant);
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |server| server.id.to_string());
    let servers: Vec<_> = selected.iter().map(|server| view(&app, server)).collect();
    Ok(reply::list("mcp_servers", &servers, total, next_page_token.as_deref()))
}

/// Add an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers", tag = "mcp servers", request_body = NewServer,
    responses((status = 201, body = Object), (status = 400, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    // Admins only: the server may be any program.
    identity.require(Role::Admin)?;
    let server = body.json::<NewServer>()?.parse(identity.tenant.clone(), app.now());
    let server = server.map_err(ApiError::bad_request)?;
    if let Ok(known) = find(&app, &identity, server.id.as_str()).await {
        require_undeclared(&known)?;
        let message = format!("MCP server `{}` already exists; delete it first", server.id);
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    app.store().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    audit::note(&identity, "mcp_server.create", server.id.as_str());
    let mut response = view(&app, &server);
    let warnings = plain_credentials(&server);
    if let (false, Some(map)) = (warnings.is_empty(), response.as_object_mut()) {
        map.insert("warnings".to_owned(), json!(warnings));
    }
    Ok(created(response))
}

/// Warns of values that look like credentials in clear, which other users of the machine may see.
fn plain_credentials(server: &McpServer) -> Vec<String> {
    let warning = |field: String| {
        format!(
            "`{field}` seems to contain a credential; store it with `haft secret set NAME` and refer to it as `${{NAME}}`"
        )
    };
    redact::redact_transport(&server.transport).suspicious.into_iter().map(warning).collect()
}

/// Return one MCP server with its state.
#[utoipa::path(
    get, path = "/mcp-servers/{id}", tag = "mcp servers", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = find(&app, &identity, &id).await?;
    Ok(success(view(&app, &server)).into_response())
}

/// Change an MCP server.
#[utoipa::path(
    patch, path = "/mcp-servers/{id}", tag = "mcp servers", params(("id" = String, Path)),
    request_body = ServerPatch,
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let mut server = find(&app, &identity, &id).await?;
    require_undeclared(&server)?;
    let patch: ServerPatch = body.json()?;
    if let Some(policy) = &patch.policy {
        server.policy = parse_policy(Some(policy)).map_err(ApiError::bad_request)?;
    }
    if let Some(timeout) = patch.timeout_ms {
        server.timeout_ms = timeout.map(check_timeout).transpose().map_err(ApiError::bad_request)?;
    }
    if let Some(limit) = patch.max_response_bytes {
        server.max_response_bytes =
            limit.map(check_response_limit).transpose().map_err(ApiError::bad_request)?;
    }
    server.enabled = patch.enabled.unwrap_or(server.enabled);
    server.accept_changes = patch.accept_changes.unwrap_or(server.accept_changes);
    server.modified_at = app.now();
    app.store().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    audit::note(&identity, "mcp_server.update", &id);
    Ok(success(view(&app, &server)).into_response())
}

/// Delete an MCP server and its tools.
#[utoipa::path(
    delete, path = "/mcp-servers/{id}", tag = "mcp servers", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    require_undeclared(&server)?;
    app.store().delete_mcp_server(identity.tenant.clone(), server.id).await?;
    app.mcp_clients().reload().await?;
    audit::note(&identity, "mcp_server.delete", &id);
    Ok(reply::message(format!("MCP server '{id}' deleted")))
}

/// Reload the tools of an MCP server, connecting to it if needed.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/refresh", tag = "mcp servers", params(("id" = String, Path)),
    responses(
        (status = 200, body = Object), (status = 404, body = ErrorBody), (status = 502, body = ErrorBody)
    )
)]
pub(crate) async fn refresh(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let server = find(&app, &identity, &id).await?;
    app.mcp_clients().refresh(&server.tenant, &server.id).await?;
    Ok(success(view(&app, &server)).into_response())
}

/// List the tools of an MCP server that changed since they were accepted.
#[utoipa::path(
    get, path = "/mcp-servers/{id}/changes", tag = "mcp servers", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn changes(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = find(&app, &identity, &id).await?;
    let changed = app.store().changed_mcp_tools(&server.tenant, &server.id).await?;
    let list: Vec<_> = changed
        .iter()
        .map(|change| {
            let side = |spec: &haft_core::spec::ToolSpec| {
                let is_read_only = spec.tags.iter().any(|tag| tag == READ_ONLY);
                let mut hints = match &spec.implementation {
                    Implementation::Mcp(mcp) => json!(mcp.hints),
                    _ => json!({}),
                };
                if let Some(hints) = hints.as_object_mut() {
                    hints.insert("read_only".to_owned(), is_read_only.into());
                }
                json!({"description": spec.description, "display_name": spec.display_name,
                       "input_schema": spec.input_schema, "output_schema": spec.output_schema,
                       "hints": hints})
            };
            json!({"name": change.tool.spec.name, "agreed": side(&change.tool.spec), "offered": side(&change.offered)})
        })
        .collect();
    Ok(success(json!({"changes": list, "total": list.len()})).into_response())
}

/// Accept changed tools of an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/accept", tag = "mcp servers", params(("id" = String, Path)),
    request_body = AcceptBody,
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn accept(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let AcceptBody { tools } = body.json_or_default()?;
    let changed = app.store().changed_mcp_tools(&server.tenant, &server.id).await?;
    let name_of = |change: &haft_store::PendingToolChange| change.tool.spec.name.to_string();
    if let Some(unknown) = tools.iter().flatten().find(|name| !changed.iter().any(|c| name_of(c) == **name)) {
        return Err(ApiError::not_found("changed tool", unknown));
    }
    let mut accepted = Vec::new();
    for change in changed {
        let name = name_of(&change);
        if tools.as_ref().is_none_or(|tools| tools.contains(&name)) {
            app.store().accept_mcp_tool(change.tool.id).await?;
            accepted.push(name);
        }
    }
    audit::note(&identity, "mcp_server.accept", &format!("{id}: {}", accepted.join(", ")));
    Ok(success(json!({"accepted": accepted})).into_response())
}

/// Rejects changes to a server that the configuration declares: they would be lost at the next start.
fn require_undeclared(server: &McpServer) -> Result<(), ApiError> {
    let Some(file) = &server.declared_in else { return Ok(()) };
    let message =
        format!("MCP server `{}` is declared in `{file}`; change it there and restart haft", server.id);
    Err(ApiError::new(ErrorCode::ReadOnly, message))
}

pub(super) async fn find(app: &App, identity: &Identity, id: &str) -> Result<McpServer, ApiError> {
    let all = app.store().mcp_servers().await?;
    let server = all.into_iter().find(|server| server.tenant == identity.tenant && server.id.as_str() == id);
    server.ok_or_else(|| ApiError::not_found("MCP server", id))
}

/// Returns a server with its state; credentials are masked, references to secrets are not.
fn view(app: &App, server: &McpServer) -> Value {
    let masked =
        McpServer { transport: redact::redact_transport(&server.transport).transport, ..server.clone() };
    let mut view = serde_json::to_value(&masked).unwrap_or_default();
    let state = app.mcp_clients().state(&server.tenant, &server.id);
    let state = state.map_or_else(|| json!({"phase": Phase::Disconnected}), |state| json!(state));
    if let Some(map) = view.as_object_mut() {
        map.insert("state".to_owned(), state);
    }
    view
}
