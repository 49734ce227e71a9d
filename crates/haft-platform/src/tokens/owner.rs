//! To whom a token belongs.

use haft_core::actor::{ActorKind, Rights};
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::token::{Role, TokenRecord};

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::people::find_actor;
use crate::rights::check_rights;

/// The owner of people's own tokens in a request.
const SELF: &str = "me";
/// The most tokens of a person or a service account, without expired ones.
const MAX_TOKENS: usize = 100;

/// The person or service account to whom a new token belongs.
pub(super) struct Owner {
    pub(super) id: ActorId,
    /// What the owner may do, beyond which no token of it reaches.
    pub(super) rights: Rights,
    /// Whether it creates the token itself.
    pub(super) is_self: bool,
}

impl Owner {
    /// Returns whether it may do everything that a token may do.
    pub(super) fn covers(&self, token: &TokenRecord) -> bool {
        self.rights.role >= token.role
            && self.rights.elevated >= token.elevated
            && self.rights.platform >= token.platform
            && self.rights.tools.covers(&token.tools)
    }

    /// Returns whether a token does less than the owner.
    pub(super) fn reduces(&self, token: &TokenRecord) -> bool {
        token.role < self.rights.role || !token.tools.covers(&self.rights.tools)
    }
}

/// Finds the owner that a request names. By default, what an admin creates has no owner, and what others create
/// belongs to them.
pub(super) async fn find(
    app: &Context,
    identity: &Identity,
    tenant: &TenantId,
    named: Option<&str>,
) -> Result<Option<Owner>, ServiceError> {
    let own = identity.actor.as_ref().filter(|own| !own.is_reduced && identity.tenant == *tenant);
    let is_self = |named: &str| {
        named == SELF || own.is_some_and(|own| own.id.to_string() == named || own.is_email(named))
    };
    let owner = match named {
        None if identity.role >= Role::Admin => return Ok(None),
        None => own_owner(identity)?,
        Some(named) if is_self(named) => own_owner(identity)?,
        Some(named) => {
            identity.require(Role::Admin)?;
            let found = find_actor(app, tenant, named).await?;
            if found.actor.kind == ActorKind::Person {
                // It would act in the name of that person.
                let message =
                    "people create their own tokens; create one for a service account, or an invitation";
                return Err(ServiceError::new(ErrorCode::Forbidden, message));
            }
            check_rights(identity, tenant, &found.rights)?;
            Owner { id: found.actor.id, rights: found.rights, is_self: false }
        }
    };
    let now = app.now();
    let records = app.store().access().member_records(&[owner.id]).await?;
    let counts = |token: &&TokenRecord| !token.is_grant() && token.expires_at.is_none_or(|end| now < end);
    if records.tokens.iter().filter(counts).count() >= MAX_TOKENS {
        let message = format!("the owner has {MAX_TOKENS} tokens, which is the limit; revoke old ones first");
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    Ok(Some(owner))
}

/// Returns the principal's own person or service account.
fn own_owner(identity: &Identity) -> Result<Owner, ServiceError> {
    match &identity.actor {
        Some(own) if own.is_reduced => {
            let message = "this token may do less than its person, so it creates no others; log in";
            Err(ServiceError::new(ErrorCode::Forbidden, message))
        }
        Some(own) => {
            let (role, elevated, platform) = (identity.role, identity.elevated, identity.platform);
            let rights = Rights { role, elevated, platform, tools: identity.tools.clone() };
            Ok(Owner { id: own.id, rights, is_self: true })
        }
        None => {
            let message = "invalid `owner`: your token has no owner";
            Err(ServiceError::bad_request(message))
        }
    }
}

/// Returns a token with the tools that it really gives: those that its owner has, too.
pub(super) fn within(tools: Option<&AllowList>, token: &TokenRecord) -> TokenRecord {
    let tools = tools.map_or_else(|| token.tools.clone(), |tools| tools.intersection(&token.tools));
    TokenRecord { tools, ..token.clone() }
}

/// Returns the tools of the owner of a token that is about to be rotated. Rejects the rotation of another person's token:
/// whoever rotates it gets its value.
pub(super) async fn check_rotation(
    app: &Context,
    identity: &Identity,
    token: &TokenRecord,
) -> Result<Option<AllowList>, ServiceError> {
    let Some(owner) = token.actor else { return Ok(None) };
    if identity.actor.as_ref().is_some_and(|own| own.id == owner) {
        return Ok(Some(identity.tools.clone()));
    }
    let owner = find_actor(app, &token.tenant, &owner.to_string()).await?;
    match owner.actor.kind {
        ActorKind::ServiceAccount => Ok(Some(owner.rights.tools)),
        ActorKind::Person => {
            let message = "only the person to whom the token belongs can rotate it; an admin can revoke it";
            Err(ServiceError::new(ErrorCode::Forbidden, message))
        }
    }
}
