//! `/mcp-servers/{id}/login`: logging in to the MCP servers that want it.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use haft_core::outcome::ErrorCode;
use haft_core::secret::Secret;
use haft_core::token::Role;
use haft_mcp::client::{Callback, OAuthError};
use serde_json::json;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::success;
use crate::routes::mcp::own_address;
use crate::routes::mcp_servers::find;

/// Where authorisation servers send people back to.
const CALLBACK: &str = "/api/mcp-servers/oauth/callback";
impl From<OAuthError> for ApiError {
    fn from(error: OAuthError) -> Self {
        let code = match &error {
            OAuthError::NeedsLogin | OAuthError::Unreachable { .. } => ErrorCode::Network,
            OAuthError::Metadata(_) | OAuthError::Refused { .. } => ErrorCode::InvalidResponse,
            OAuthError::UnknownState | OAuthError::Denied(_) | OAuthError::Configuration(_) => {
                ErrorCode::InvalidRequest
            }
            OAuthError::Store(_) => ErrorCode::StoreUnavailable,
        };
        Self::new(code, error.to_string())
    }
}

/// Begin a login to an MCP server: answers the address that a person has to open.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/login", tag = "mcp servers", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody))
)]
pub(crate) async fn login(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let host: Option<Authority> = host.and_then(|host| host.parse().ok());
    let redirect = format!("{}{CALLBACK}", own_address(&app, host.as_ref()));
    let who = identity.caller.name.as_ref();
    let url = app.mcp_clients().begin_login(&server.tenant, &server.id, who, &redirect).await?;
    app.audit(&identity, "mcp_server.login", &id);
    Ok(success(json!({"authorization_url": url.as_str(), "redirect_uri": redirect})).into_response())
}

/// Forget the login to an MCP server.
#[utoipa::path(
    post, path = "/mcp-servers/{id}/logout", tag = "mcp servers", params(("id" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
)]
pub(crate) async fn logout(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let server = find(&app, &identity, &id).await?;
    let was = app.mcp_clients().logout(&server).await?;
    app.audit(&identity, "mcp_server.logout", &id);
    Ok(success(json!({"was_logged_in": was})).into_response())
}

/// Where a person comes back to after a login. It takes no token: the `state` is known to nobody but who began the
/// login, and is good once and for ten minutes.
#[utoipa::path(
    get, path = "/mcp-servers/oauth/callback", tag = "mcp servers",
    params(("state" = String, Query), ("code" = Option<String>, Query), ("iss" = Option<String>, Query), ("error" = Option<String>, Query)),
    responses((status = 200, body = String), (status = 400, body = String)), security(())
)]
pub(crate) async fn callback(State(app): State<Arc<App>>, params: Params) -> Response {
    let text = |name| params.get(name).map(str::to_owned);
    let error = text("error").map(|error| match text("error_description") {
        Some(more) => format!("{error}: {more}"),
        None => error,
    });
    let callback = Callback {
        state: text("state").unwrap_or_default(),
        code: text("code").map(Secret::new),
        iss: text("iss"),
        error,
    };
    // In a task of its own: whoever closes the page must not lose what the code was given for.
    let ended = tokio::spawn(async move {
        let done = app.mcp_clients().finish_login(callback).await?;
        app.record_login(&done).await;
        Ok::<_, OAuthError>(done)
    });
    match ended.await {
        Ok(Ok(done)) => {
            let words =
                format!("haft is logged in to the MCP server `{}`. You may close this page.", done.id);
            page(StatusCode::OK, &words)
        }
        Ok(Err(error)) => page(StatusCode::BAD_REQUEST, &format!("There is no login: {error}.")),
        Err(_) => page(StatusCode::INTERNAL_SERVER_ERROR, "The login could not be handled."),
    }
}

/// Words and nothing else: what an authorisation server says is never taken for a page.
fn page(status: StatusCode, words: &str) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, words.to_owned()).into_response()
}
