//! Authentication: bearer tokens, hashed at rest, looked up in memory.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use haft_core::Timestamp;
use haft_core::executor::CallContext;
use haft_core::hash;
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::token::{Role, TokenRecord};
use haft_runtime::pipeline::Caller;

use crate::app::App;
use crate::error::ApiError;

/// The authenticated sender of a request.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// The tenant.
    pub tenant: TenantId,
    /// The role of the token.
    pub role: Role,
    /// Name, elevation and role, for the pipeline.
    pub caller: Caller,
    /// The id of a stored token.
    pub token_id: Option<TokenId>,
    expires_at: Option<Timestamp>,
}

impl Identity {
    /// Returns the identity of the caller of a tool.
    pub(crate) fn from_call(call: &CallContext) -> Self {
        Self {
            tenant: call.tenant().clone(),
            role: call.caller().role,
            caller: call.caller().clone(),
            token_id: None,
            // Checked when the call was authenticated.
            expires_at: None,
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
}

impl From<&TokenRecord> for Identity {
    fn from(token: &TokenRecord) -> Self {
        Self {
            tenant: token.tenant.clone(),
            role: token.role,
            caller: Caller { name: token.name.as_str().into(), elevated: token.elevated, role: token.role },
            token_id: Some(token.id).filter(|id| !id.0.is_nil()),
            expires_at: token.expires_at,
        }
    }
}

/// All tokens by hash; lookups are lock-free, a change replaces the whole map.
#[derive(Default)]
pub(crate) struct Tokens {
    by_hash: ArcSwap<HashMap<String, Arc<Identity>>>,
}

impl Tokens {
    /// Replaces all tokens.
    pub(crate) fn replace(&self, tokens: &[TokenRecord]) {
        let map = tokens.iter().map(|token| (token.hash.clone(), Arc::new(Identity::from(token)))).collect();
        self.by_hash.store(Arc::new(map));
    }

    /// Finds the identity of a token. The lookup is by hash, so that its timing reveals nothing about the token.
    fn find(&self, token: &str, now: Timestamp) -> Option<Arc<Identity>> {
        let hash = hash::of_bytes(token.as_bytes());
        let identity = self.by_hash.load().get(&hash).cloned()?;
        identity.expires_at.is_none_or(|end| now < end).then_some(identity)
    }
}

/// Authenticates a request.
pub(crate) fn authenticate(app: &App, headers: &HeaderMap) -> Result<Arc<Identity>, ApiError> {
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
        authenticate(app, &parts.headers).map(|identity| Identity::clone(&identity))
    }
}
