//! Opens sockets: authentication, the check of the origin, limits.

use std::sync::Arc;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{FromRequestParts as _, Request, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_core::token::Role;

use super::connection;
use crate::authentication;
use crate::browser;
use crate::error::ApiError;
use crate::open_stream;
use haft_platform::Installation;
use haft_platform::identity::Identity;
use haft_platform::request_id;

/// The largest message of a client, in bytes.
const MAX_MESSAGE: usize = 1 << 20;

/// Returns the route.
pub(crate) fn router() -> Router<Arc<Installation>> {
    Router::new().route("/ws", get(open))
}

async fn open(State(app): State<Arc<Installation>>, request: Request) -> Result<Response, ApiError> {
    let (mut parts, _) = request.into_parts();
    let identity = authenticate(&app, &parts.headers, &parts.uri).await?;
    identity.require(Role::Caller)?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &app)
        .await
        .map_err(|rejection| rejected(&rejection))?;
    let permit = open_stream::acquire(&app, &identity, &parts.extensions)?;
    let request = request_id::current().unwrap_or_default();
    let upgrade = upgrade.max_message_size(MAX_MESSAGE).max_frame_size(MAX_MESSAGE);
    let response = upgrade.on_upgrade(move |socket| async move {
        Box::pin(connection::serve(app, identity, request, socket)).await;
        drop(permit);
    });
    Ok(response.into_response())
}

fn rejected(rejection: &WebSocketUpgradeRejection) -> ApiError {
    let message = format!("`/ws` speaks WebSocket only: {}", rejection.body_text());
    ApiError::bad_request(message)
}

/// Authenticates by the header `Authorization`, by `?token=`, for browsers without headers, or by the session.
async fn authenticate(app: &Installation, headers: &HeaderMap, uri: &Uri) -> Result<Identity, ApiError> {
    if headers.contains_key(header::AUTHORIZATION) {
        check_origin(app, headers)?;
        return authentication::authenticate_bearer(app, headers).await;
    }
    if let Some(token) = token_of(uri) {
        check_origin(app, headers)?;
        let mut bearer = HeaderMap::new();
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let value = value.map_err(|_| ApiError::new(ErrorCode::Unauthorized, "the token is invalid"))?;
        bearer.insert(header::AUTHORIZATION, value);
        return authentication::authenticate_bearer(app, &bearer).await;
    }
    let Some(cookie) = browser::session_cookie(headers) else {
        let message = "missing token; send `?token=TOKEN`, or the header `Authorization: Bearer TOKEN`";
        return Err(ApiError::new(ErrorCode::Unauthorized, message));
    };
    // A browser sends the cookie whatever page opens the socket, and always says which.
    if !headers.contains_key(header::ORIGIN) {
        return Err(ApiError::new(ErrorCode::Forbidden, "a socket with a session needs the header `Origin`"));
    }
    browser::check_page(app, headers)?;
    authentication::authenticate_session(app, cookie).await
}

fn token_of(uri: &Uri) -> Option<String> {
    let query = uri.query()?;
    let mut pairs = url::form_urlencoded::parse(query.as_bytes());
    pairs.find(|(name, _)| name == "token").map(|(_, token)| token.into_owned())
}

/// Rejects pages of other origins, except the configured ones.
fn check_origin(app: &Installation, headers: &HeaderMap) -> Result<(), ApiError> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let text = origin.to_str().unwrap_or_default();
    let listed = &app.settings().server.cors_origins;
    if listed.iter().any(|entry| entry == "*" || entry == text) {
        return Ok(());
    }
    browser::check_page(app, headers).map_err(|_| {
        let origin = excerpt(text, 120);
        let message = format!("origin `{origin}` is not allowed; add it to `server.cors_origins`");
        ApiError::new(ErrorCode::Forbidden, message)
    })
}
