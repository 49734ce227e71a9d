//! `/mcp-servers`: the MCP servers whose tools are used.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::mcp_server::{
    AcceptBody, AcceptedTools, McpChangeList, McpFindingList, McpServerList, McpServerView, McpToolChange,
    McpToolHints, McpToolSide, NewServer, RejectBody, RejectedTools,
};
use haft_core::implementation::{Implementation, ToolHints};
use haft_core::mcp::CredentialMode;
use haft_core::mcp::{McpServer, ServerState};
use haft_core::redact;
use haft_core::spec::{Policy, ToolSpec};
use haft_core::token::Role;
use haft_definition::mcp_import::READ_ONLY;
use serde::{Deserialize, Deserializer};
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::mcp_definition;
use haft_platform::mcp_servers::{self, ServerChange, find};

/// Changes to a server.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[expect(clippy::option_option, reason = "missing, null, or a value")]
pub(crate) struct ServerPatch {
    /// Whether haft connects to it.
    enabled: Option<bool>,
    /// Whether changed tools are accepted without review.
    accept_changes: Option<bool>,
    /// Whether new tools wait for review; `null`: once somebody reviewed the server.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<bool>)]
    review_new_tools: Option<Option<bool>>,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    #[schema(value_type = Option<Policy>)]
    policy: Option<String>,
    /// Whose credentials its connections use: `shared`, `person` or `person_or_shared`.
    #[schema(value_type = Option<CredentialMode>)]
    credentials: Option<String>,
    /// The timeout of a call, in milliseconds; `null` restores the default.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<u64>)]
    timeout_ms: Option<Option<u64>>,
    /// How long the server may take to start, in milliseconds; `null` restores the default.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<u64>)]
    start_timeout_ms: Option<Option<u64>>,
    /// Whether the program may use the network.
    network: Option<bool>,
    /// The size limit of a result, in bytes; `null` restores the default.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<u64>)]
    max_response_bytes: Option<Option<u64>>,
}

/// Distinguishes `null` from a missing field.
#[expect(clippy::option_option, reason = "missing, null, or a value")]
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(value: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(value).map(Some)
}

fn side(spec: &ToolSpec) -> McpToolSide {
    let others = match &spec.implementation {
        Implementation::Mcp(mcp) => mcp.hints,
        _ => ToolHints::default(),
    };
    McpToolSide {
        description: spec.description.clone(),
        display_name: spec.display_name.clone(),
        input_schema: spec.input_schema.clone(),
        output_schema: spec.output_schema.clone(),
        hints: McpToolHints { read_only: spec.tags.iter().any(|tag| tag == READ_ONLY), others },
    }
}

/// List the MCP servers with their state.
#[utoipa::path(get, path = "/mcp-servers", tag = "mcp servers", params(PageParams), responses((status = 200, body = Success<McpServerList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("mcp_servers")?;
    let mut selected = app.store().catalog().mcp_servers_of(&identity.tenant, &page.of_store()).await?;
    let total = app.store().catalog().mcp_server_count(&identity.tenant).await?;
    let next_page_token = page.truncate(&mut selected, |server| server.id.to_string());
    let servers: Vec<_> = selected.iter().map(|server| view(&app, server)).collect();
    Ok(success(McpServerList { mcp_servers: servers, total, next_page_token }).into_response())
}

/// Add an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers", tag = "mcp servers", request_body = NewServer,
    responses((status = 201, body = Success<McpServerView>), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    // Admins only: the server may be any program.
    identity.require(Role::Admin)?;
    let server = body.json::<mcp_definition::NewServer>()?.parse(identity.tenant.clone(), app.now());
    let server = server.map_err(ApiError::bad_request)?;
    let server = mcp_servers::create(&app, &identity, server).await?;
    Ok(created(McpServerView { warnings: mcp_servers::warnings(&server), ..view(&app, &server) }))
}

/// Return one MCP server with its state.
#[utoipa::path(
    get, path = "/mcp-servers/{id}", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<McpServerView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = find(&app, &identity, &id).await?;
    Ok(success(view(&app, &server)).into_response())
}

/// Change an MCP server.
#[utoipa::path(
    patch, path = "/mcp-servers/{id}", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    request_body = ServerPatch,
    responses((status = 200, body = Success<McpServerView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = mcp_servers::changeable(&app, &identity, &id).await?;
    let ServerPatch {
        enabled,
        accept_changes,
        review_new_tools,
        policy,
        credentials,
        timeout_ms,
        start_timeout_ms,
        network,
        max_response_bytes,
    } = body.json()?;
    let change = ServerChange {
        enabled,
        accept_changes,
        review_new_tools,
        policy,
        credentials,
        timeout_ms,
        start_timeout_ms,
        network,
        max_response_bytes,
    };
    let server = mcp_servers::update(&app, &identity, server, &change).await?;
    Ok(success(view(&app, &server)).into_response())
}

/// Delete an MCP server and its tools.
#[utoipa::path(
    delete, path = "/mcp-servers/{id}", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    mcp_servers::delete(&app, &identity, &id).await?;
    Ok(reply::message(format!("MCP server '{id}' deleted")))
}

/// Reload the tools of an MCP server, connecting to it if needed.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/refresh", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<McpServerView>), (status = 404, body = ErrorBody), (status = 502, body = ErrorBody))
)]
pub(crate) async fn refresh(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = mcp_servers::refresh(&app, &identity, &id).await?;
    Ok(success(view(&app, &server)).into_response())
}

/// List the tools of an MCP server that wait for review: new ones, and those that changed since they were accepted.
#[utoipa::path(
    get, path = "/mcp-servers/{id}/changes", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<McpChangeList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn changes(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = find(&app, &identity, &id).await?;
    let changed = app.store().catalog().changed_mcp_tools(&server.tenant, &server.id).await?;
    let changes: Vec<_> = changed
        .iter()
        .map(|change| McpToolChange {
            name: change.tool.spec.name.to_string(),
            rejected: change.rejected,
            new: change.is_new,
            findings: change.findings.clone(),
            agreed: side(&change.tool.spec),
            offered: side(&change.offered),
        })
        .collect();
    Ok(success(McpChangeList { total: changes.len(), changes }).into_response())
}

/// List what the scan found in the tools of an MCP server.
#[utoipa::path(
    get, path = "/mcp-servers/{id}/findings", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<McpFindingList>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn findings(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = find(&app, &identity, &id).await?;
    let findings = app.store().catalog().mcp_findings(&server.tenant, &server.id).await?;
    Ok(success(McpFindingList { total: findings.len(), findings }).into_response())
}

/// Mark an MCP server as reviewed: from now on, its new tools wait for review.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/review", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<McpServerView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn review(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let server = mcp_servers::review(&app, &identity, &id).await?;
    Ok(success(view(&app, &server)).into_response())
}

/// Accept new and changed tools of an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/accept", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    request_body = Option<AcceptBody>,
    responses((status = 200, body = Success<AcceptedTools>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn accept(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let AcceptBody { tools } = body.json_or_default()?;
    let accepted = mcp_servers::accept(&app, &identity, &server, tools.as_deref()).await?;
    Ok(success(AcceptedTools { accepted }).into_response())
}

/// Reject new and changed tools of an MCP server: they stay out of service until the server changes them again.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/reject", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    request_body = Option<RejectBody>,
    responses((status = 200, body = Success<RejectedTools>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn reject(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let RejectBody { tools } = body.json_or_default()?;
    let rejected = mcp_servers::reject(&app, &identity, &server, tools.as_deref()).await?;
    Ok(success(RejectedTools { rejected }).into_response())
}

/// Returns a server with its state; credentials are masked, references to secrets are not.
fn view(app: &Installation, server: &McpServer) -> McpServerView {
    let masked =
        McpServer { transport: redact::redact_transport(&server.transport).transport, ..server.clone() };
    let state = app.mcp_clients().state(&server.tenant, &server.id);
    McpServerView {
        server: masked,
        state: state.unwrap_or_else(ServerState::disconnected),
        warnings: Vec::new(),
    }
}
