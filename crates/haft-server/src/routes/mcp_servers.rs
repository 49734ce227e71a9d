//! `/mcp-servers`: the MCP servers whose tools are used.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::mcp::{McpServer, OAuthClient, OAuthGrant, Phase, Stdio, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, ToolName};
use haft_core::outcome::ErrorCode;
use haft_core::secret::MASK;
use haft_core::spec::Policy;
use haft_core::token::Role;
use serde::Deserialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{created, success};

/// A server to use: a program (`command`) or an address (`url`). Texts may name secrets as `${NAME}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the request")]
pub(crate) struct NewServer {
    /// Its name, and that of the bundle that holds its tools.
    id: String,
    /// The program.
    command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Its environment, besides PATH, HOME and LANG.
    #[serde(default)]
    env: std::collections::BTreeMap<String, String>,
    /// The folder that it starts in.
    cwd: Option<String>,
    /// Whether the program may use the network.
    #[serde(default)]
    network: bool,
    /// Whether the program sees nothing of the machine but its system folders and `cwd`.
    #[serde(default)]
    sandbox: bool,
    /// The address.
    url: Option<String>,
    /// Headers of every request.
    #[serde(default)]
    headers: std::collections::BTreeMap<String, String>,
    /// How haft shows itself where the server wants a login.
    oauth: Option<NewOAuth>,
    /// What stands before the names of its tools.
    #[serde(default)]
    prefix: String,
    /// Whether it is connected to.
    #[serde(default = "yes")]
    enabled: bool,
    /// Whether a tool that changes on the server is taken over without being asked.
    #[serde(default)]
    accept_changes: bool,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    policy: Option<String>,
}

/// How haft shows itself to the authorisation server; without it, it registers by itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewOAuth {
    /// The client that was registered there.
    client_id: Option<String>,
    /// Its secret, as `${NAME}`.
    client_secret: Option<String>,
    /// What to ask for; nothing means what the server says.
    #[serde(default)]
    scopes: Vec<String>,
    /// Who agrees: `authorization_code` (a person, the default) or `client_credentials` (nobody).
    grant: Option<String>,
}

impl NewOAuth {
    fn read(self) -> Result<OAuthClient, ApiError> {
        let grant = match self.grant.as_deref() {
            None | Some("authorization_code") => OAuthGrant::AuthorizationCode,
            Some("client_credentials") => OAuthGrant::ClientCredentials,
            Some(_) => {
                let message = "`oauth.grant` must be `authorization_code` or `client_credentials`";
                return Err(ApiError::bad_request(message));
            }
        };
        if self.client_id.is_none()
            && (self.client_secret.is_some() || grant == OAuthGrant::ClientCredentials)
        {
            return Err(ApiError::bad_request("`oauth.client_id` is missing"));
        }
        if self.client_secret.as_deref().is_some_and(|text| !text.contains("${")) {
            let message = "`oauth.client_secret`: store it with `haft secret set NAME`, and write `${NAME}`";
            return Err(ApiError::bad_request(message));
        }
        let Self { client_id, client_secret, scopes, .. } = self;
        if scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
            return Err(ApiError::bad_request("`oauth.scopes` must be words without spaces"));
        }
        Ok(OAuthClient { client_id, client_secret, scopes, grant })
    }
}

fn yes() -> bool {
    true
}

/// What of a server is changed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServerPatch {
    /// Whether it is connected to.
    enabled: Option<bool>,
    /// Whether a tool that changes on the server is taken over without being asked.
    accept_changes: Option<bool>,
}

/// Which of the changed tools are agreed to.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Accepted {
    /// Their names; all that changed where none is said.
    tools: Option<Vec<String>>,
}

impl NewServer {
    fn read(self, app: &App, identity: &Identity) -> Result<McpServer, ApiError> {
        let id =
            BundleSlug::new(&self.id).map_err(|error| ApiError::bad_request(format!("`id`: {error}")))?;
        if !self.prefix.is_empty() {
            ToolName::new(&self.prefix)
                .map_err(|error| ApiError::bad_request(format!("`prefix`: {error}")))?;
        }
        let policy = match self.policy.as_deref() {
            None | Some("allow") => Policy::Allow,
            Some("elevated") => Policy::Elevated,
            Some("deny") => Policy::Deny,
            Some(_) => return Err(ApiError::bad_request("`policy` must be `allow`, `elevated` or `deny`")),
        };
        if self.env.values().chain(self.headers.values()).any(|value| value == MASK) {
            return Err(ApiError::bad_request("`***` stands for a value that is not shown; write the value"));
        }
        let transport = match (self.command, self.url) {
            (Some(command), None) if !command.trim().is_empty() => Transport::Stdio(Stdio {
                command,
                args: self.args,
                env: self.env,
                cwd: self.cwd,
                network: self.network,
                sandbox: self.sandbox,
            }),
            (None, Some(url)) if url.starts_with("http://") || url.starts_with("https://") => {
                let oauth = self.oauth.map(NewOAuth::read).transpose()?;
                Transport::Http(StreamableHttp { url, headers: self.headers, oauth })
            }
            (None, Some(_)) => {
                return Err(ApiError::bad_request("`url` must begin with http:// or https://"));
            }
            _ => return Err(ApiError::bad_request("say either `command` or `url`")),
        };
        let now = app.now();
        Ok(McpServer {
            id,
            tenant: identity.tenant.clone(),
            transport,
            enabled: self.enabled,
            accept_changes: self.accept_changes,
            policy,
            prefix: self.prefix,
            created_at: now,
            modified_at: now,
        })
    }
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
    let server = body.json::<NewServer>()?.read(&app, &identity)?;
    if find(&app, &identity, server.id.as_str()).await.is_ok() {
        let message = format!("there is an MCP server `{}` already; delete it first", server.id);
        return Err(ApiError::new(ErrorCode::Conflict, message));
    }
    app.store().put_mcp_server(server.clone()).await?;
    app.mcp_clients().reload().await?;
    app.audit(&identity, "mcp_server.create", server.id.as_str());
    Ok(created(view(&app, &server)))
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
    let patch: ServerPatch = body.json()?;
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
                json!({"description": spec.description, "display_name": spec.display_name,
                       "input_schema": spec.input_schema, "output_schema": spec.output_schema})
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
    let name_of = |change: &haft_store::Changed| change.tool.spec.name.to_string();
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

pub(super) async fn find(app: &App, identity: &Identity, id: &str) -> Result<McpServer, ApiError> {
    let all = app.store().mcp_servers().await?;
    let found = all.into_iter().find(|server| server.tenant == identity.tenant && server.id.as_str() == id);
    found.ok_or_else(|| ApiError::not_found("MCP server", id))
}

/// Writes a server as others may see it: what stands in its environment and its headers is not shown, unless it
/// only names secrets.
fn view(app: &App, server: &McpServer) -> Value {
    let mut shown = serde_json::to_value(server).unwrap_or_default();
    for field in ["env", "headers"] {
        let values = shown.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten();
        for (_, value) in values {
            if !value.as_str().is_some_and(|text| text.contains("${")) {
                *value = MASK.into();
            }
        }
    }
    let state = app.mcp_clients().state(&server.tenant, &server.id);
    let state = state.map_or_else(|| json!({"phase": Phase::Disconnected}), |state| json!(state));
    if let Some(map) = shown.as_object_mut() {
        map.insert("state".to_owned(), state);
    }
    shown
}
