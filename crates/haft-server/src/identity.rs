//! Authentication: bearer tokens, hashed at rest, looked up in memory.

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use haft_core::Timestamp;
use haft_core::executor::CallContext;
use haft_core::hash;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::Principal;
use haft_core::token::{Role, TokenRecord};

use crate::app::App;
use crate::error::ApiError;

/// The authenticated principal of a request.
#[derive(Debug, Clone)]
pub(crate) struct Identity(Arc<Principal>);

impl Identity {
    /// Returns the identity of the caller of a tool.
    pub(crate) fn from_call(call: &CallContext) -> Self {
        Self(Arc::clone(call.principal()))
    }

    /// Returns the principal, for the pipeline.
    pub(crate) fn principal(&self) -> Arc<Principal> {
        Arc::clone(&self.0)
    }

    /// Rejects a token whose role is too low.
    pub(crate) fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role >= role {
            return Ok(());
        }
        let message = format!("role `{}` required; the token has `{}`", role.as_str(), self.role.as_str());
        Err(ApiError::new(ErrorCode::Forbidden, message))
    }

    /// Returns whether it administers the platform: what belongs to no tenant.
    pub(crate) fn is_platform_admin(&self) -> bool {
        self.role == Role::Admin && self.tenant == TenantId::default_tenant()
    }

    /// Rejects a change to what an owner has: an editor changes what belongs to its tenant, a platform admin also what is
    /// global.
    pub(crate) fn require_editor_of(&self, owner: &TenantId) -> Result<(), ApiError> {
        self.require(Role::Editor)?;
        if !owner.is_global() || self.is_platform_admin() {
            return Ok(());
        }
        let message =
            "built-in tools belong to all tenants; only an admin of the tenant `default` can change them";
        Err(ApiError::new(ErrorCode::Forbidden, message))
    }
}

impl Deref for Identity {
    type Target = Principal;

    fn deref(&self) -> &Principal {
        &self.0
    }
}

/// All tokens by hash; lookups are lock-free, a change replaces the whole map.
#[derive(Default)]
pub(crate) struct Tokens {
    by_hash: ArcSwap<HashMap<String, Token>>,
}

impl Tokens {
    /// Replaces all tokens.
    pub(crate) fn replace(&self, tokens: &[TokenRecord]) {
        let map = tokens.iter().map(|token| (token.hash.clone(), Token::from(token))).collect();
        self.by_hash.store(Arc::new(map));
    }

    /// Finds the principal of a token. The lookup is by hash, so that its timing reveals nothing about the token.
    fn find(&self, token: &str, now: Timestamp) -> Option<Identity> {
        let hash = hash::of_bytes(token.as_bytes());
        let tokens = self.by_hash.load();
        let token = tokens.get(&hash).filter(|token| token.expires_at.is_none_or(|end| now < end))?;
        Some(Identity(Arc::clone(&token.principal)))
    }
}

/// A token that gives access.
struct Token {
    principal: Arc<Principal>,
    expires_at: Option<Timestamp>,
}

impl From<&TokenRecord> for Token {
    fn from(token: &TokenRecord) -> Self {
        Self { principal: Arc::new(Principal::from(token)), expires_at: token.expires_at }
    }
}

/// Authenticates a request.
pub(crate) fn authenticate(app: &App, headers: &HeaderMap) -> Result<Identity, ApiError> {
    let fail = |message: &str| ApiError::new(ErrorCode::Unauthorized, message);
    let value = headers
        .get(header::AUTHORIZATION)
        .ok_or_else(|| fail("missing token; send the header `Authorization: Bearer TOKEN`"))?
        .to_str()
        .map_err(|_| fail("the `Authorization` header is not ASCII"))?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(fail("invalid `Authorization` header; expected `Bearer TOKEN`"));
    }
    app.tokens().find(token.trim(), app.now()).ok_or_else(|| fail("the token is invalid or has expired"))
}

/// A handler that takes an [`Identity`] requires a token; a test requests every route without one.
impl FromRequestParts<Arc<App>> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        authenticate(app, &parts.headers)
    }
}
