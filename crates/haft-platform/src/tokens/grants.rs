//! Who may create, see, rotate and revoke which tokens.

use haft_core::Timestamp;
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::token::{Role, TokenRecord};

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Returns the tenant that a request names: its own, or any for platform admins.
pub(super) fn tenant(
    app: &Context,
    identity: &Identity,
    named: Option<&str>,
) -> Result<TenantId, ServiceError> {
    let Some(named) = named.filter(|named| *named != identity.tenant.as_str()) else {
        return Ok(identity.tenant.clone());
    };
    if identity.require_platform().is_err() {
        // The same for tenants that do not exist.
        return Err(forbidden("`tenant` must be your own tenant"));
    }
    let id: Option<TenantId> = named.parse().ok();
    id.filter(|id| app.access().tenant(id).is_some()).ok_or_else(|| ServiceError::not_found("tenant", named))
}

/// Finds a token of the own tenant, or of any for platform admins.
pub async fn find(app: &Context, identity: &Identity, id: &str) -> Result<TokenRecord, ServiceError> {
    let not_found = || ServiceError::not_found("token", id);
    let parsed: TokenId = id.parse().map_err(|_| not_found())?;
    let is_visible =
        |token: &TokenRecord| token.tenant == identity.tenant || identity.require_platform().is_ok();
    let tokens = app.store().access().tokens().await?;
    tokens.into_iter().find(|token| token.id == parsed && is_visible(token)).ok_or_else(not_found)
}

/// Rejects a token that could do more than the principal that creates or rotates it.
pub(super) fn check(identity: &Identity, token: &TokenRecord) -> Result<(), ServiceError> {
    if token.platform && (token.role != Role::Admin || !token.tenant.is_default()) {
        return Err(ServiceError::bad_request(
            "invalid `platform`: a platform admin has the role `admin` and the tenant `default`",
        ));
    }
    check_platform(identity, token)?;
    identity.require(token.role)?;
    if token.elevated && !identity.elevated {
        return Err(forbidden("your token is not elevated, so it cannot give access to one that is"));
    }
    let covers_rate = match (identity.rate_limit, token.rate_limit) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(own), Some(other)) => own.covers(other),
    };
    if !covers_rate {
        return Err(forbidden("`rate_limit` must not allow more calls than that of your own token"));
    }
    if identity.tools.covers(&token.tools) {
        return Ok(());
    }
    let own = identity.tools.rules().unwrap_or_default();
    let own: Vec<String> = own.iter().map(|rule| format!("`{rule}`")).collect();
    Err(forbidden(format!("`tools` must not allow more than your own token: {}", own.join(", "))))
}

/// Returns the expiry of a new or rotated token: not after that of the principal's own token.
pub(super) async fn expiry(
    app: &Context,
    identity: &Identity,
    wanted: Option<Timestamp>,
) -> Result<Option<Timestamp>, ServiceError> {
    let Some(end) = own_expiry(app, identity).await? else { return Ok(wanted) };
    match wanted {
        Some(wanted) if wanted > end => Err(forbidden(format!(
            "`expires_in` is too long: your own token expires at {end}, and no token that it creates or rotates may \
             outlive it"
        ))),
        wanted => Ok(Some(wanted.unwrap_or(end))),
    }
}

/// Returns when the principal's own token expires; `None` if it does not. The value that was sent may end earlier than
/// the token: it is the old one of a rotated token. A token that no longer exists gives nothing.
pub(super) async fn own_expiry(
    app: &Context,
    identity: &Identity,
) -> Result<Option<Timestamp>, ServiceError> {
    let sent_end = identity.token().and_then(|token| token.expires_at);
    let Some(own) = identity.token else { return Ok(sent_end) };
    let own = app.store().access().tokens().await?.into_iter().find(|token| token.id == own);
    let own = own.ok_or_else(|| forbidden("your token was revoked"))?;
    // `None` is no end, so `Option::min` would return the wrong one.
    Ok(own.expires_at.into_iter().chain(sent_end).min())
}

/// Rejects changes of platform admins by others.
pub(super) fn check_platform(identity: &Identity, token: &TokenRecord) -> Result<(), ServiceError> {
    if token.platform { identity.require_platform() } else { Ok(()) }
}

fn forbidden(message: impl Into<String>) -> ServiceError {
    ServiceError::new(ErrorCode::Forbidden, message)
}
