//! Access tokens: creating, rotating and revoking them.

use std::time::Duration;

use haft_core::id::TokenId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::problem::{excerpt, nearest};
use haft_core::resource::ResourceKind;
use haft_core::secret::Secret;
use haft_core::token::{PreviousToken, Role, TokenRecord};
use haft_core::{Timestamp, duration, hash};
use haft_store::{OwnedByToken, TokenRotation};
use uuid::Uuid;

use super::{grants, owner};
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::rate_text::RateText;
use crate::rights::{default_rate, named_tenant};

/// The longest time that the old value of a rotated token works.
const MAX_GRACE: Duration = Duration::from_hours(7 * 24);

/// Generates the value of a token; returns it with its hash.
fn generate() -> Result<(Secret, String), ServiceError> {
    let token = crate::local_token::generate().map_err(|_| {
        ServiceError::new(ErrorCode::Internal, "the operating system returned no random bytes")
    })?;
    let hash = hash::of_bytes(token.expose().as_bytes());
    Ok((token, hash))
}

fn expiry(app: &Context, expires_in: Option<&str>) -> Result<Option<Timestamp>, ServiceError> {
    let Some(text) = expires_in else { return Ok(None) };
    Ok(Some(app.now().checked_add(lifetime(text)?).map_err(|_| too_long())?))
}

/// Parses a lifetime; unlike other durations it may be longer than a day, as in `90d` and `2000h`.
pub fn lifetime(text: &str) -> Result<Duration, ServiceError> {
    lifetime_of("expires_in", text)
}

fn lifetime_of(field: &str, text: &str) -> Result<Duration, ServiceError> {
    let time = duration::parse_long(text, Duration::from_secs(1))
        .map_err(|error| ServiceError::bad_request(format!("`{field}`: {error}")))?;
    if time.is_zero() {
        return Err(ServiceError::bad_request(format!("invalid `{field}`: must be greater than zero")));
    }
    Ok(time)
}

fn too_long() -> ServiceError {
    ServiceError::bad_request("invalid `expires_in`: too long; omit it for a token that does not expire")
}

/// What a new token may do.
pub struct TokenFields {
    pub name: String,
    /// The default is `caller`, or the role of the owner.
    pub role: Option<String>,
    pub elevated: bool,
    pub platform: bool,
    /// The rules of the tools that it may see and call; `None` allows every tool.
    pub tools: Option<Vec<String>>,
    pub rate_limit: Option<RateText>,
    /// The lifetime, for example `90d`.
    pub expires_in: Option<String>,
    pub tenant: Option<String>,
    /// To whom it belongs: `me`, or a service account.
    pub owner: Option<String>,
}

/// A token with its value, which is shown only once.
pub struct IssuedToken {
    pub record: TokenRecord,
    pub value: Secret,
}

/// Returns the tokens of a tenant by id, for admins: the own one, or any for platform admins. People who are no admins see
/// their own. `actor` is the id of the person or the service account that they belong to.
pub async fn list(
    app: &Context,
    identity: &Identity,
    tenant: Option<&str>,
    actor: Option<&str>,
) -> Result<Vec<TokenRecord>, ServiceError> {
    grants::require_token_owner(identity)?;
    let tenant = named_tenant(app, identity, tenant)?;
    let is_admin = identity.role >= Role::Admin;
    let is_listed = |token: &TokenRecord| {
        token.tenant == tenant
            && !token.is_grant()
            && (is_admin || grants::is_own(identity, token))
            && actor.is_none_or(|actor| token.actor.is_some_and(|own| own.to_string() == actor))
    };
    let mut all: Vec<_> = app.store().access().tokens().await?.into_iter().filter(is_listed).collect();
    all.sort_by_key(|token| token.id.to_string());
    Ok(all)
}

/// Creates a token. No token can create a stronger one.
pub async fn create(
    app: &Context,
    identity: &Identity,
    new: TokenFields,
) -> Result<IssuedToken, ServiceError> {
    let name = new.name.trim().to_owned();
    if name.is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
        return Err(ServiceError::bad_request(
            "invalid `name`: expected 1 to 64 characters without control characters",
        ));
    }
    grants::require_token_owner(identity)?;
    let tenant = named_tenant(app, identity, new.tenant.as_deref())?;
    let owner = owner::find(app, identity, &tenant, new.owner.as_deref()).await?;
    let role = match &new.role {
        Some(role) => Role::parse(role).ok_or_else(|| {
            ServiceError::bad_request("invalid `role`: expected `viewer`, `caller`, `editor` or `admin`")
        })?,
        None => owner.as_ref().map_or(Role::Caller, |owner| owner.rights.role),
    };
    let tools = AllowList::try_from(new.tools)
        .map_err(|error| ServiceError::bad_request(format!("invalid `tools`: {error}")))?;
    let (value, hash) = generate()?;
    let actor = owner.as_ref().map(|owner| owner.id);
    let rate = new.rate_limit.as_ref().map(RateText::check).transpose()?;
    let record = TokenRecord {
        id: TokenId(Uuid::now_v7()),
        tenant,
        name,
        hash,
        role,
        elevated: new.elevated,
        platform: new.platform,
        tools,
        rate_limit: rate.or_else(|| default_rate(grants::own_rates(identity, actor))),
        created_at: app.now(),
        expires_at: grants::expiry(app, identity, expiry(app, new.expires_in.as_deref())?).await?,
        last_used_at: None,
        previous: None,
        // A token that somebody creates with another one for themselves goes with that one.
        parent: identity.token.filter(|_| owner.as_ref().is_some_and(|owner| owner.is_self)),
        actor,
    };
    grants::check(identity, &owner::within(owner.as_ref().map(|owner| &owner.rights.tools), &record))?;
    app.store().access().insert_token(&record).await?;
    app.reload_access().await?;
    audit::note(identity, "token.create", &record.name);
    Ok(IssuedToken { record, value })
}

/// Makes a token with the role, the tools and the rate limit of the principal, but without its elevation and its platform
/// rights. It expires after `lifetime`, or with the principal's own token if that expires earlier, and is revoked with it.
/// The caller stores it.
pub(crate) async fn like_own(
    app: &Context,
    identity: &Identity,
    name: String,
    lifetime: Duration,
) -> Result<IssuedToken, ServiceError> {
    let (value, hash) = generate()?;
    let end = app.now().checked_add(lifetime).map_err(|_| too_long())?;
    let own_end = grants::own_expiry(app, identity).await?;
    let record = TokenRecord {
        id: TokenId(Uuid::now_v7()),
        tenant: identity.tenant.clone(),
        name,
        hash,
        role: identity.role,
        elevated: false,
        platform: false,
        tools: identity.tools.clone(),
        rate_limit: identity.rate_limit,
        created_at: app.now(),
        expires_at: Some(own_end.map_or(end, |own_end| own_end.min(end))),
        last_used_at: None,
        previous: None,
        parent: identity.token,
        actor: identity.actor.as_ref().map(|actor| actor.id),
    };
    grants::check(identity, &record)?;
    Ok(IssuedToken { record, value })
}

/// Returns a warning for each rule of a token that matches no tool, with the most similar name. Such a rule is not an
/// error, because the tool may be added later.
pub fn unmatched_rules(app: &Context, token: &TokenRecord) -> Vec<String> {
    let snapshot = app.registry().snapshot();
    let is_of_resources = |rule: &str, kind: ResourceKind| {
        rule.split_once(':').is_some_and(|(bundle, _)| bundle == kind.plural())
    };
    let is_of_tools = |rule: &&String| !ResourceKind::ALL.into_iter().any(|kind| is_of_resources(rule, kind));
    let rules = token.tools.rules().unwrap_or_default();
    let matches = |rule: &String| {
        AllowList::new([rule])
            .is_ok_and(|list| snapshot.tools(&token.tenant).any(|entry| list.allows(&entry.tool)))
    };
    let unmatched = rules.iter().filter(is_of_tools).filter(|rule| !matches(rule));
    let warning = |rule: &String| {
        let names = snapshot.tools(&token.tenant).map(|entry| entry.tool.spec.name.as_str());
        let bare = rule.rsplit_once(':').map_or(rule.as_str(), |(_, name)| name);
        let hint = nearest(bare, names).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("no tool matches `{}`{hint}", excerpt(rule, 60))
    };
    unmatched.map(warning).collect()
}

/// Replaces the value of a token. The old one works for a grace period, if there is one. Without it, its child tokens are
/// revoked: a rotation without grace means that the value has leaked, and it could have been used to create them.
pub async fn rotate(
    app: &Context,
    identity: &Identity,
    id: &str,
    grace: Option<&str>,
    expires_in: Option<&str>,
) -> Result<IssuedToken, ServiceError> {
    grants::require_token_owner(identity)?;
    let record = grants::find(app, identity, id).await?;
    let tools = owner::check_rotation(app, identity, &record).await?;
    grants::check(identity, &owner::within(tools.as_ref(), &record))?;
    if identity.token == Some(record.id) && identity.token().is_some_and(|own| own.hash != record.hash) {
        let message = "the token was rotated, and this is its old value; rotate it with the new one";
        return Err(ServiceError::new(ErrorCode::Forbidden, message));
    }
    let grace = grace.map(|grace| lifetime_of("grace", grace)).transpose()?;
    if grace.is_some_and(|grace| grace > MAX_GRACE) {
        return Err(ServiceError::bad_request("invalid `grace`: at most `7d`"));
    }
    let (value, hash) = generate()?;
    let expires_at = match expires_in {
        Some(_) => expiry(app, expires_in)?,
        None => record.expires_at,
    };
    let expires_at = grants::expiry(app, identity, expires_at).await?;
    let previous =
        grace.map(|grace| PreviousToken { hash: record.hash.clone(), expires_at: app.now() + grace });
    let record = TokenRecord { hash, previous, expires_at, ..record };
    let TokenRecord { id, hash, previous, expires_at, .. } = record.clone();
    app.store().access().rotate_token(TokenRotation { id, hash, previous, expires_at }).await?;
    app.reload_access().await?;
    audit::note(identity, "token.rotate", &record.name);
    Ok(IssuedToken { record, value })
}

/// Changes the rate limit of a token; `None` removes it.
pub async fn set_rate(
    app: &Context,
    identity: &Identity,
    token: TokenRecord,
    rate: Option<&RateText>,
) -> Result<TokenRecord, ServiceError> {
    let rate_limit = rate.map(RateText::check).transpose()?;
    let token = TokenRecord { rate_limit, ..token };
    grants::check(identity, &token)?;
    app.store().access().set_token_rate(token.id, rate_limit).await?;
    app.reload_access().await?;
    audit::note(identity, "token.update", &token.name);
    Ok(token)
}

/// Gives a token without an owner to the caller or to a service account; its value stays the same, and so does what it may
/// do now. Those that come from it belong to the same owner afterwards.
pub async fn assign(
    app: &Context,
    identity: &Identity,
    token: TokenRecord,
    owner: &str,
) -> Result<TokenRecord, ServiceError> {
    if token.actor.is_some() {
        let message = format!("the token `{}` has an owner; create another one for `{owner}`", token.name);
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    if let Some(parent) = token.parent {
        let message = format!("the token `{}` comes from `{parent}`; give that one an owner", token.name);
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    grants::check_platform(identity, &token)?;
    grants::check(identity, &token)?;
    let Some(found) = owner::find(app, identity, &token.tenant, Some(owner)).await? else { return Ok(token) };
    if !found.covers(&token) {
        let message = format!(
            "the token `{}` may do more than `{owner}`; give the owner its role, tools and elevation first",
            token.name
        );
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    // A token that does less than its owner goes on to own what it creates itself.
    let owned = if found.reduces(&token) { OwnedByToken::Stays } else { OwnedByToken::MovesToOwner };
    app.store().access().set_token_owner(token.id, found.id, owned).await?;
    app.reload_access().await?;
    audit::note(identity, "token.assign", &token.name);
    Ok(TokenRecord { actor: Some(found.id), ..token })
}

/// Revokes a token and those that come from it; they stop working immediately, and their sessions end. Whoever sends a token may revoke that one itself.
pub async fn delete(app: &Context, identity: &Identity, id: &str) -> Result<(), ServiceError> {
    let is_sent = identity.token().is_some() && identity.session().is_none();
    let is_own = is_sent && identity.token.is_some_and(|own| own.to_string() == id);
    if !is_own {
        grants::require_token_owner(identity)?;
    }
    let token = if is_own {
        grants::find_any(app, identity, id).await?
    } else {
        grants::find(app, identity, id).await?
    };
    grants::check_platform(identity, &token)?;
    app.store().access().delete_token(token.id).await?;
    app.reload_access().await?;
    audit::note(identity, "token.delete", &token.name);
    Ok(())
}
