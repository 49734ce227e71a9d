//! Who sends a request: bearer tokens, hashed at rest, looked up in memory.

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

/// Who sends a request.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    /// Whose things are seen.
    pub tenant: TenantId,
    /// What may be done.
    pub role: Role,
    /// The name and the elevation, for the pipeline.
    pub caller: Caller,
    /// The token, where it is a stored one.
    pub token_id: Option<TokenId>,
    expires_at: Option<Timestamp>,
}

impl Identity {
    /// Whoever called a tool that works on the catalog.
    pub(crate) fn of_call(call: &CallContext) -> Self {
        Self {
            tenant: call.tenant().clone(),
            role: call.caller().role,
            caller: call.caller().clone(),
            token_id: None,
            // It was looked at when the call came in.
            expires_at: None,
        }
    }

    /// Makes sure that the token may do this.
    pub(crate) fn require(&self, role: Role) -> Result<(), ApiError> {
        if self.role >= role {
            return Ok(());
        }
        let message =
            format!("this needs the role `{}`; the token has `{}`", role.as_str(), self.role.as_str());
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

/// All tokens by their hash; read without waiting, replaced whole on a change.
#[derive(Default)]
pub(crate) struct Tokens {
    by_hash: ArcSwap<HashMap<String, Arc<Identity>>>,
}

impl Tokens {
    /// Takes all tokens anew.
    pub(crate) fn replace(&self, tokens: &[TokenRecord]) {
        let map = tokens.iter().map(|token| (token.hash.clone(), Arc::new(Identity::from(token)))).collect();
        self.by_hash.store(Arc::new(map));
    }

    /// Finds who has a token. The look-up is by hash, so that its time says nothing about the token.
    fn find(&self, token: &str, now: Timestamp) -> Option<Arc<Identity>> {
        let hash = hash::of_bytes(token.as_bytes());
        let found = self.by_hash.load().get(&hash).cloned()?;
        found.expires_at.is_none_or(|end| now < end).then_some(found)
    }
}

/// Finds who sends a request.
pub(crate) fn authenticate(app: &App, headers: &HeaderMap) -> Result<Arc<Identity>, ApiError> {
    let fail = |message: &str| ApiError::new(ErrorCode::Unauthorized, message);
    let value = headers
        .get(header::AUTHORIZATION)
        .ok_or_else(|| fail("send a token: `Authorization: Bearer TOKEN`"))?
        .to_str()
        .map_err(|_| fail("the Authorization header is not plain text"))?;
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(fail("the Authorization header must be `Bearer TOKEN`"));
    }
    app.tokens().find(token.trim(), app.now()).ok_or_else(|| fail("the token is not known, or has expired"))
}

/// A handler that takes an [`Identity`] is behind the token check; a test asks every route without a token.
impl FromRequestParts<Arc<App>> for Identity {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        authenticate(app, &parts.headers).map(|identity| Identity::clone(&identity))
    }
}
