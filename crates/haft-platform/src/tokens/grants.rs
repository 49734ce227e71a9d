//! Who may create, see, rotate and revoke which tokens.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::actor::{ActingAs, ActorKind, Rights};
use haft_core::id::{ActorId, TokenId};
use haft_core::limit::CallRate;
use haft_core::token::{Role, TokenRecord};

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::rights::{check_rate, check_rights, forbidden};

/// Finds a token: an own one, for admins one of the own tenant, for platform admins any.
pub async fn find(app: &Context, identity: &Identity, id: &str) -> Result<TokenRecord, ServiceError> {
    let token = find_any(app, identity, id).await?;
    // Connected applications have routes of their own.
    if token.is_grant() {
        return Err(ServiceError::not_found("token", id));
    }
    let is_visible = identity.role >= Role::Admin || is_own(identity, &token);
    if is_visible { Ok(token) } else { Err(ServiceError::not_found("token", id)) }
}

/// Finds a token of the own tenant, or of any for platform admins, whatever the role.
pub(super) async fn find_any(
    app: &Context,
    identity: &Identity,
    id: &str,
) -> Result<TokenRecord, ServiceError> {
    let not_found = || ServiceError::not_found("token", id);
    let parsed: TokenId = id.parse().map_err(|_| not_found())?;
    let is_visible =
        |token: &TokenRecord| token.tenant == identity.tenant || identity.require_platform().is_ok();
    app.store().access().token(parsed).await?.filter(is_visible).ok_or_else(not_found)
}

/// Returns whether a token belongs to the person or the service account that makes a request. A reduced credential has no
/// part in the others.
pub(super) fn is_own(identity: &Identity, token: &TokenRecord) -> bool {
    let own = identity.actor.as_ref().filter(|own| !own.is_reduced);
    own.is_some_and(|own| token.actor == Some(own.id) && token.tenant == identity.tenant)
}

/// Rejects everybody but admins, and people who manage their own tokens.
pub fn require_token_owner(identity: &Identity) -> Result<(), ServiceError> {
    if identity.is_application() {
        return Err(forbidden("an application that a person has connected manages no tokens"));
    }
    let is_person = |own: &Arc<ActingAs>| own.kind == ActorKind::Person && !own.is_reduced;
    if identity.actor.as_ref().is_some_and(is_person) { Ok(()) } else { identity.require(Role::Admin) }
}

/// Rejects a token that could do more than the principal that creates or rotates it.
pub(super) fn check(identity: &Identity, token: &TokenRecord) -> Result<(), ServiceError> {
    let rights = Rights {
        role: token.role,
        elevated: token.elevated,
        platform: token.platform,
        tools: token.tools.clone(),
    };
    check_rights(identity, &token.tenant, &rights)?;
    check_rate(own_rates(identity, token.actor), token.rate_limit)
}

/// Returns the rate limits that a token must not exceed. That of the person holds for their own tokens anyway.
pub(super) fn own_rates(identity: &Identity, owner: Option<ActorId>) -> [Option<CallRate>; 2] {
    let is_own = identity.actor.as_ref().is_some_and(|own| Some(own.id) == owner);
    [identity.rate_limit, identity.member_rate.filter(|_| !is_own)]
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
pub(crate) async fn own_expiry(
    app: &Context,
    identity: &Identity,
) -> Result<Option<Timestamp>, ServiceError> {
    let sent_end = identity.token().and_then(|token| token.expires_at);
    let Some(own) = identity.token else { return Ok(sent_end) };
    let own = app.store().access().token(own).await?;
    let own = own.ok_or_else(|| forbidden("your token was revoked"))?;
    // `None` is no end, so `Option::min` would return the wrong one.
    Ok(own.expires_at.into_iter().chain(sent_end).min())
}

/// Rejects changes of platform admins by others.
pub(super) fn check_platform(identity: &Identity, token: &TokenRecord) -> Result<(), ServiceError> {
    if token.platform { identity.require_platform() } else { Ok(()) }
}
