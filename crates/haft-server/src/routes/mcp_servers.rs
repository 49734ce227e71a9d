//! `/mcp-servers`: the MCP servers whose tools are used.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::mcp::{McpServer, Phase};
use haft_core::outcome::ErrorCode;
use haft_core::redact;
use haft_core::token::Role;
use haft_definition::mcp_import::READ_ONLY;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::mcp_definition::{NewServer, policy};
use crate::params::Params;
use crate::reply::{created, success};

/// What of a server is changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerPatch {
    /// Whether it is connected to.
    enabled: Option<bool>,
    /// Whether a tool that changes on the server is taken over without being asked.
    accept_changes: Option<bool>,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    policy: Option<String>,
}

/// Which of the changed tools are agreed to.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    /// Their names; all that changed where none is said.
    tools: Option<Vec<String>>,
}

/// List the MCP servers and how they are doing.
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
    let (part, next_page_token) = page.cut(all, |server| server.id.to_string());
    let servers: Vec<_> = part.iter().map(|server| view(&app, server)).collect();
    Ok(success(json!({"mcp_servers": servers, "total": total, "next_page_token": next_page_token}))
        .into_response())
}

/// Use an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers", tag = "mcp servers", request_body = NewServer,
    responses((status = 201, body = Object), (status = 400, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    // It may be any program.
    identity.require(Role::Admin)?;
    let server = body.json::<NewServer>()?.read(identity.tenant.clone(), app.now());
    let server = server.map_err(ApiError::bad_request)?;
    if let Ok(known) = find(&app, &identity, server.id.as_str()).await {
        changeable(&known)?;
        let message = format!("there is an MCP server `{}` already; delete it first", server.id);
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    app.store().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    app.audit(&identity, "mcp_server.create", server.id.as_str());
    let mut shown = view(&app, &server);
    let warnings = doubts(&server);
    if let (false, Some(map)) = (warnings.is_empty(), shown.as_object_mut()) {
        map.insert("warnings".to_owned(), json!(warnings));
    }
    Ok(created(shown))
}

/// Says what looks like a credential that everyone can read who may see the machine's processes or the store.
fn doubts(server: &McpServer) -> Vec<String> {
    let suspicious = redact::redact_transport(&server.transport).suspicious;
    let told = |place: String| {
        format!(
            "`{place}` looks as if it held a credential: store that with `haft secret set NAME`, and write `${{NAME}}`"
        )
    };
    suspicious.into_iter().map(told).collect()
}

/// One MCP server and how it is doing.
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

/// Switch an MCP server, or say whether its changes are accepted.
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
    changeable(&server)?;
    let patch: ServerPatch = body.json()?;
    if let Some(said) = &patch.policy {
        server.policy = policy(Some(said)).map_err(ApiError::bad_request)?;
    }
    server.enabled = patch.enabled.unwrap_or(server.enabled);
    server.accept_changes = patch.accept_changes.unwrap_or(server.accept_changes);
    server.modified_at = app.now();
    app.store().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    app.audit(&identity, "mcp_server.update", &id);
    Ok(success(view(&app, &server)).into_response())
}

/// Forget an MCP server and its tools.
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
    changeable(&server)?;
    app.store().delete_mcp_server(identity.tenant.clone(), server.id).await?;
    app.mcp_clients().reload().await?;
    app.audit(&identity, "mcp_server.delete", &id);
    Ok(success(json!({"message": format!("MCP server '{id}' deleted")})).into_response())
}

/// Read the list of an MCP server again, or try again to connect to it.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/refresh", tag = "mcp servers", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
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

/// What an MCP server changed of its tools since someone agreed to them.
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
                json!({"description": spec.description, "display_name": spec.display_name,
                       "input_schema": spec.input_schema, "output_schema": spec.output_schema,
                       "hints": {"read_only": is_read_only}})
            };
            json!({"name": change.tool.spec.name, "agreed": side(&change.tool.spec), "offered": side(&change.offered)})
        })
        .collect();
    Ok(success(json!({"changes": list, "total": list.len()})).into_response())
}

/// Agree to what an MCP server made of its tools.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/accept", tag = "mcp servers", params(("id" = String, Path)),
    request_body = Accepted,
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
    let Accepted { tools } = body.json_or_default()?;
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
    app.audit(&identity, "mcp_server.accept", &format!("{id}: {}", accepted.join(", ")));
    Ok(success(json!({"accepted": accepted})).into_response())
}

/// What a file declares is changed there, or it would be as before after the next start.
fn changeable(server: &McpServer) -> Result<(), ApiError> {
    let Some(file) = &server.declared_in else { return Ok(()) };
    let message = format!(
        "the MCP server `{}` is declared in `{file}`: change it there, and start haft again",
        server.id
    );
    Err(ApiError::new(ErrorCode::ReadOnly, message))
}

pub(super) async fn find(app: &App, identity: &Identity, id: &str) -> Result<McpServer, ApiError> {
    let all = app.store().mcp_servers().await?;
    let found = all.into_iter().find(|server| server.tenant == identity.tenant && server.id.as_str() == id);
    found.ok_or_else(|| ApiError::not_found("MCP server", id))
}

/// Writes a server as others may see it: secrets that stand in it are not shown, unless it only names them.
fn view(app: &App, server: &McpServer) -> Value {
    let shown =
        McpServer { transport: redact::redact_transport(&server.transport).transport, ..server.clone() };
    let mut shown = serde_json::to_value(&shown).unwrap_or_default();
    let state = app.mcp_clients().state(&server.tenant, &server.id);
    let state = state.map_or_else(|| json!({"phase": Phase::Disconnected}), |state| json!(state));
    if let Some(map) = shown.as_object_mut() {
        map.insert("state".to_owned(), state);
    }
    shown
}
