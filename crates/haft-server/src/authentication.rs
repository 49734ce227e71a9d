//! Authentication: a bearer token, or the session cookie of a browser.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use haft_core::outcome::ErrorCode;

use crate::browser;
use crate::error::ApiError;
use haft_platform::Installation;
use haft_platform::bearer;
use haft_platform::identity::Identity;

/// Authenticates a request by its token or its session.
pub(crate) async fn authenticate(
    app: &Installation,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Identity, ApiError> {
    if headers.contains_key(header::AUTHORIZATION) {
        return authenticate_bearer(app, headers).await;
    }
    match browser::session_cookie(headers) {
        None => authenticate_bearer(app, headers).await,
        Some(cookie) => {
            let identity = authenticate_session(app, cookie).await?;
            browser::check_same_origin(app, method, headers)?;
            Ok(identity)
        }
    }
}

/// Authenticates a request by its token only. Unknown, expired and revoked tokens get the same error.
pub(crate) async fn authenticate_bearer(
    app: &Installation,
    headers: &HeaderMap,
) -> Result<Identity, ApiError> {
    let value = headers
        .get(header::AUTHORIZATION)
        .ok_or_else(|| unauthorized("missing token; send the header `Authorization: Bearer TOKEN`"))?
        .to_str()
        .map_err(|_| unauthorized("the `Authorization` header is not ASCII"))?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(unauthorized("invalid `Authorization` header; expected `Bearer TOKEN`"));
    }
    let token = bearer::find_token(app, token.trim()).await?;
    token.map(Identity::from_token).ok_or_else(|| unauthorized("the token is invalid or has expired"))
}

/// Authenticates a request by its session. A session that another node has just opened is looked up in the store.
pub(crate) async fn authenticate_session(app: &Installation, cookie: &str) -> Result<Identity, ApiError> {
    let ended = || unauthorized("the session is invalid or has ended; log in again at `/login`");
    let hash = haft_core::hash::of_bytes(cookie.as_bytes());
    let now = app.now();
    let known = app.access().session(&hash, now);
    let is_new = known.is_none();
    let session = match known {
        Some(session) => session,
        None => app.store().access().find_session(&hash).await?.ok_or_else(ended)?,
    };
    let mut token = app.access().token_by_hash(&session.token_hash, now);
    if token.is_none() && is_new {
        // The login may have created its person, too.
        app.reload_access().await?;
        token = app.access().token_by_hash(&session.token_hash, now);
    }
    let token = token.ok_or_else(ended)?;
    Ok(Identity::from_session(token, session))
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Unauthorized, message)
}

/// Who makes a request. A handler that takes it requires a token or a session; a test requests every route without one.
pub(crate) struct Caller(pub(crate) Identity);

impl FromRequestParts<Arc<Installation>> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<Installation>) -> Result<Self, ApiError> {
        authenticate(app, &parts.method, &parts.headers).await.map(Self)
    }
}
