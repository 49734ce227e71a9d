//! `/session` and `/login-links`: who is logged in, and links that log a browser in.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use haft_api::people::SessionActor;
use haft_api::token::{LoginLinkView, SessionView};
use haft_core::outcome::ErrorCode;

use crate::authentication::Caller;
use crate::error::ApiError;
use crate::reply::{Success, created, success};
use crate::routes::mcp;
use haft_platform::Installation;
use haft_platform::audit;

/// Show who makes the request.
#[utoipa::path(get, path = "/session", tag = "tokens", responses((status = 200, body = Success<SessionView>)))]
pub(crate) async fn get(Caller(identity): Caller) -> Response {
    let expires_at = match identity.session() {
        Some(session) => Some(session.expires_at),
        None => identity.token().and_then(|token| token.expires_at),
    };
    let view = SessionView {
        tenant: identity.tenant.to_string(),
        name: identity.name.to_string(),
        actor: identity.actor.as_deref().map(SessionActor::from),
        owner_id: identity.id().to_string(),
        token_id: identity.token.map(|id| id.0),
        role: identity.role,
        elevated: identity.elevated,
        platform: identity.platform,
        tools: identity.tools.rules(),
        rate_limit: identity.rate_limit.or(identity.member_rate).map(Into::into),
        is_session: identity.session().is_some(),
        expires_at,
    };
    success(view).into_response()
}

/// Create a link that logs a browser in with this token: it works once, within ten minutes.
#[utoipa::path(
    post, path = "/login-links", tag = "tokens", responses((status = 201, body = Success<LoginLinkView>))
)]
pub(crate) async fn create_link(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    // A session could otherwise prolong itself without end.
    // So could whoever has a token of an issuer, which is the login of a person until it expires.
    let is_login = identity.token().is_some_and(|token| token.is_login());
    let is_token = identity.session().is_none() && !is_login;
    let Some(token) = identity.token().filter(|_| is_token) else {
        return Err(ApiError::new(
            ErrorCode::Forbidden,
            "login links are created with a token, not in a session",
        ));
    };
    if identity.is_application() {
        let message = "an application that a person has connected creates no login links";
        return Err(ApiError::new(ErrorCode::Forbidden, message));
    }
    let link = app.create_login_link(token.hash.clone()).await?;
    audit::note(&identity, "login_link.create", &identity.name);
    let url = format!("{}{}", origin(&app, &headers), link.path.expose());
    Ok(created(LoginLinkView { url, expires_at: link.record.expires_at }))
}

/// Returns the origin of this server as a client sees it.
pub(super) fn origin(app: &Installation, headers: &HeaderMap) -> String {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()?.parse().ok());
    let host = host.or_else(|| app.settings().addr.to_string().parse().ok());
    mcp::public_url(app, host.as_ref())
}
