//! Authentication: a bearer token, or the session cookie of a browser.

use std::ops::Deref;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, header};
use haft_core::executor::CallContext;
use haft_core::login::SessionRecord;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::token::Role;

use crate::access::Token;
use crate::app::App;
use crate::browser;
use crate::error::ApiError;

/// The authenticated principal of a request.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    principal: Arc<Principal>,
    /// The token; `None` if a tool makes the request.
    token: Option<Arc<Token>>,
    /// The session, if a browser makes the request.
    session: Option<Arc<SessionRecord>>,
}

impl Identity {
    /// Returns the identity of the caller of a tool.
    pub(crate) fn from_call(call: &CallContext) -> Self {
        Self { principal: Arc::clone(call.principal()), token: None, session: None }
    }

    /// Returns the identity of a principal that another surface has authenticated.
    pub(crate) fn from_principal(principal: Arc<Principal>) -> Self {
        Self { principal, token: None, session: None }
    }

    /// Returns the identity that a token gives.
    pub(crate) fn from_token(token: Arc<Token>) -> Self {
        Self { principal: Arc::clone(&token.principal), token: Some(token), session: None }
    }

    /// Returns the principal, for the pipeline.
    pub(crate) fn principal(&self) -> Arc<Principal> {
        Arc::clone(&self.principal)
    }

    /// Returns the token.
    pub(crate) fn token(&self) -> Option<&Arc<Token>> {
        self.token.as_ref()
    }

    /// Returns the session of a browser.
    pub(crate) fn session(&self) -> Option<&SessionRecord> {
        self.session.as_deref()
    }

    /// Completes when an open stream has to end: the token or the session no longer gives access, or the server stops.
    pub(crate) fn stream_end(&self, app: &Arc<App>) -> impl Future<Output = ()> + Send + 'static {
        let (app, token, session) = (Arc::clone(app), self.token.clone(), self.session.clone());
        async move {
            let stopping = app.events().stopping().clone();
            let token_ends = async {
                match &token {
                    Some(token) => app.access().revoked(token, || app.now()).await,
                    None => std::future::pending().await,
                }
            };
            let session_ends = async {
                match &session {
                    Some(session) => session_ends(&app, session).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = stopping.cancelled() => {}
                () = token_ends => {}
                () = session_ends => {}
            }
        }
    }

    /// Rejects a token whose role is too low.
    pub(crate) fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("role `{}` required; the token has `{}`", role.as_str(), self.role.as_str());
        Err(ApiError::new(ErrorCode::Forbidden, message))
    }

    /// Returns whether it administers the platform.
    pub(crate) fn is_platform_admin(&self) -> bool {
        self.platform && self.role == Role::Admin
    }

    /// Rejects everybody but platform admins.
    pub(crate) fn require_platform(&self) -> Result<(), ApiError> {
        if self.is_platform_admin() {
            return Ok(());
        }
        Err(ApiError::new(ErrorCode::Forbidden, "platform admin required; the token has no `platform`"))
    }

    /// Rejects a change to what an owner has: an editor changes what belongs to its tenant, a platform admin also what is
    /// global.
    pub(crate) fn require_editor_of(&self, owner: &TenantId) -> Result<(), ApiError> {
        self.require(Role::Editor)?;
        if !owner.is_global() || self.is_platform_admin() {
            return Ok(());
        }
        let message = "built-in tools belong to all tenants; only a platform admin can change them";
        Err(ApiError::new(ErrorCode::Forbidden, message))
    }
}

impl Deref for Identity {
    type Target = Principal;

    fn deref(&self) -> &Principal {
        &self.principal
    }
}

/// Authenticates a request by its token or its session.
pub(crate) async fn authenticate(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Identity, ApiError> {
    if headers.contains_key(header::AUTHORIZATION) {
        return authenticate_bearer(app, headers);
    }
    match browser::session_cookie(headers) {
        None => authenticate_bearer(app, headers),
        Some(cookie) => {
            let identity = authenticate_session(app, cookie).await?;
            browser::check_same_origin(app, method, headers)?;
            Ok(identity)
        }
    }
}

/// Authenticates a request by its token only. Unknown, expired and revoked tokens get the same error.
pub(crate) fn authenticate_bearer(app: &App, headers: &HeaderMap) -> Result<Identity, ApiError> {
    let value = headers
        .get(header::AUTHORIZATION)
        .ok_or_else(|| unauthorized("missing token; send the header `Authorization: Bearer TOKEN`"))?
        .to_str()
        .map_err(|_| unauthorized("the `Authorization` header is not ASCII"))?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(unauthorized("invalid `Authorization` header; expected `Bearer TOKEN`"));
    }
    let token = app.access().token(token.trim(), app.now());
    token.map(Identity::from_token).ok_or_else(|| unauthorized("the token is invalid or has expired"))
}

/// Authenticates a request by its session. A session that another node has just opened is looked up in the store.
pub(crate) async fn authenticate_session(app: &App, cookie: &str) -> Result<Identity, ApiError> {
    let ended = || unauthorized("the session is invalid or has ended; log in again at `/login`");
    let hash = haft_core::hash::of_bytes(cookie.as_bytes());
    let now = app.now();
    let session = match app.access().session(&hash, now) {
        Some(session) => session,
        None => app.store().find_session(&hash).await?.ok_or_else(ended)?,
    };
    let token = app.access().token_by_hash(&session.token_hash, now).ok_or_else(ended)?;
    Ok(Identity { session: Some(Arc::new(session)), ..Identity::from_token(token) })
}

/// Completes when a session has expired or its browser has logged out, on whatever node.
async fn session_ends(app: &App, session: &SessionRecord) {
    loop {
        // One that another node has just opened is not in memory yet.
        let is_open = app.now() < session.expires_at
            && (app.access().session(&session.hash, app.now()).is_some()
                || !matches!(app.store().find_session(&session.hash).await, Ok(None)));
        if !is_open {
            return;
        }
        app.access().changed().await;
    }
}

fn unauthorized(message: &str) -> ApiError {
    ApiError::new(ErrorCode::Unauthorized, message)
}

/// A handler that takes an [`Identity`] requires a token or a session; a test requests every route without one.
impl FromRequestParts<Arc<App>> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        authenticate(app, &parts.method, &parts.headers).await
    }
}
