//! `/mcp-servers/{id}/login`: logins to MCP servers that require OAuth.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_api::mcp_server::{LoggedOut, StartedLogin};
use haft_core::token::Role;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::routes::accounts::read_callback;
use crate::routes::mcp::public_url;
use haft_platform::Installation;
use haft_platform::accounts::{self, Completed};
use haft_platform::audit;
use haft_platform::mcp_servers::find;

/// The path that authorization servers redirect to.
const CALLBACK: &str = "/api/mcp-servers/oauth/callback";

/// Start a login to an MCP server; returns the URL that the user opens in a browser.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/login", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<StartedLogin>), (status = 404, body = ErrorBody), (status = 502, body = ErrorBody))
)]
pub(crate) async fn login(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host: Option<Authority> = host.and_then(|host| host.parse().ok());
    let redirect = format!("{}{CALLBACK}", public_url(&app, host.as_ref()));
    let url = accounts::begin_shared(&app, &identity, &server, &redirect).await?;
    audit::note(&identity, "mcp_server.login", &id);
    Ok(success(StartedLogin { authorization_url: url.to_string(), redirect_uri: redirect }).into_response())
}

/// Log out of an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/logout", tag = "mcp servers", params(("id" = String, Path, example = "files")),
    responses((status = 200, body = Success<LoggedOut>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn logout(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let was_logged_in = app.mcp_clients().logout(&server).await?;
    audit::note(&identity, "mcp_server.logout", &id);
    Ok(success(LoggedOut { was_logged_in }).into_response())
}

/// Finish a login: the authorization server redirects the browser here. Needs no token: only the client that started the
/// login knows `state`, which is valid once, for ten minutes.
#[utoipa::path(
    get, path = "/mcp-servers/oauth/callback", tag = "mcp servers",
    params(("state" = String, Query), ("code" = Option<String>, Query), ("iss" = Option<String>, Query), ("error" = Option<String>, Query),
        ("error_description" = Option<String>, Query)),
    responses((status = 200, content_type = "text/plain", body = String, description = "The login succeeded",
            example = "Logged in to MCP server `files`. You can close this page."),
        (status = 400, content_type = "text/plain", body = String, description = "The login failed",
            example = "Login failed: the login is unknown or has expired.")),
    security(())
)]
pub(crate) async fn callback(
    State(app): State<Arc<Installation>>,
    params: Result<Params, ApiError>,
) -> Response {
    let params = match params {
        Ok(params) => params,
        Err(error) => return page(StatusCode::BAD_REQUEST, &format!("Login failed: {}.", error.0.message)),
    };
    // In a task of its own: closing the page must not lose the tokens that the code was exchanged for.
    let finished = tokio::spawn(async move { accounts::complete(&app, None, read_callback(&params)).await });
    match finished.await {
        Ok(Ok(Completed { provider, shared })) => {
            let name = shared.map_or(provider, |server| format!("MCP server `{}`", server.id));
            page(StatusCode::OK, &format!("Logged in to {name}. You can close this page."))
        }
        Ok(Err(error)) => page(StatusCode::BAD_REQUEST, &format!("Login failed: {error}.")),
        Err(_) => page(StatusCode::INTERNAL_SERVER_ERROR, "Login failed: an internal error occurred."),
    }
}

/// Returns plain text, so that a message of an authorization server is never interpreted as HTML.
fn page(status: StatusCode, text: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, text.to_owned()).into_response()
}
