//! Inviting, changing and removing people and service accounts.

use std::sync::Arc;

use haft_core::actor::{
    ActorKind, ActorRecord, ActorStatus, LOCAL_OWNER, Membership, Provisioned, Rights, owner_key,
};
use haft_core::id::{ActorId, GroupId};
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use haft_store::{ActorChange, HandedOver, RunQuery};
use serde_json::json;
use uuid::Uuid;

use super::directory::{Directory, Member, MemberFilter, find_group, find_member};
use super::rights::RightsFields;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::login::LoginLink;
use crate::rate_text::RateText;
use crate::rights::{check_rate, check_rights, default_rate, named_tenant};
use crate::runs::RunEngine;

/// The most people and service accounts of a tenant.
pub(crate) const MAX_MEMBERS: usize = 10_000;
/// The most groups that somebody is a member of.
const MAX_GROUPS: usize = 64;
/// The longest name, in characters.
const MAX_NAME: usize = 64;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 1000;
/// The longest e-mail address, in bytes (RFC 5321).
const MAX_EMAIL: usize = 254;
/// The most runs that are cancelled at once when somebody is disabled.
const CANCELLED_RUNS: u32 = 1000;

/// A new person or service account.
#[derive(Debug, Default)]
pub struct MemberFields {
    pub name: String,
    pub email: Option<String>,
    pub description: String,
    pub responsible: Option<String>,
    pub rights: RightsFields,
    pub rate_limit: Option<RateText>,
    pub groups: Vec<String>,
    pub tenant: Option<String>,
    /// What an identity provider says about a person.
    pub provisioned: Option<Provisioned>,
    /// Whether a person has no access yet.
    pub is_disabled: bool,
}

/// Changes of a person or a service account; `None` keeps a field.
#[derive(Debug, Default)]
pub struct MemberUpdate {
    pub name: Option<String>,
    /// An empty one removes it.
    pub email: Option<String>,
    pub description: Option<String>,
    /// An empty one removes it.
    pub responsible: Option<String>,
    pub status: Option<ActorStatus>,
    pub rights: RightsFields,
    /// `Some(None)`: no limit.
    pub rate_limit: Option<Option<RateText>>,
    pub groups: Option<Vec<String>>,
    /// Whether it has no access to this tenant.
    pub is_suspended: Option<bool>,
    /// What an identity provider says about a person.
    pub provisioned: Option<Provisioned>,
}

/// Returns the members of a tenant of one kind, by name.
pub async fn list(
    app: &Context,
    identity: &Identity,
    kind: ActorKind,
    tenant: Option<&str>,
    filter: MemberFilter<'_>,
) -> Result<Vec<Member>, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, tenant)?;
    Ok(Directory::load(app).await?.members(app, &tenant, kind, &filter))
}

/// Finds a member of a tenant by its id, its e-mail address, or a name that no other member has.
pub async fn find(
    app: &Context,
    identity: &Identity,
    kind: ActorKind,
    (tenant, reference): (Option<&str>, &str),
) -> Result<Member, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, tenant)?;
    find_member(app, &tenant, kind, reference).await
}

/// Creates a person or a service account. Somebody whom another tenant knows becomes a member of this one, too.
pub async fn new_member(
    app: &Context,
    identity: &Identity,
    kind: ActorKind,
    fields: MemberFields,
) -> Result<Member, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, fields.tenant.as_deref())?;
    check_room(app, &tenant).await?;
    let none = Rights { role: Role::Caller, elevated: false, platform: false, tools: AllowList::default() };
    let rights = fields.rights.apply(identity, &tenant, none)?;
    let rate = fields.rate_limit.as_ref().map(RateText::check).transpose()?;
    let rate_limit = rate.or_else(|| default_rate(own_rates(identity)));
    check_rate(own_rates(identity), rate_limit)?;
    let groups = group_ids(app, identity, &tenant, &fields.groups).await?;
    let email = fields.email.as_deref().map(check_email).transpose()?.flatten();
    let name = check_name(&fields.name)?;
    let known = match &email {
        Some(email) => app.store().access().person_with_email(email).await?,
        None => None,
    };
    let id = if let Some(known) = known {
        if identity.require_platform().is_err() {
            let message = "another person has this e-mail address; a platform admin can add that person";
            return Err(ServiceError::new(ErrorCode::Conflict, message));
        }
        let membership = Membership {
            actor: known,
            tenant: tenant.clone(),
            rights,
            is_suspended: fields.is_disabled,
            rate_limit,
            provisioned: fields.provisioned,
        };
        app.store().access().insert_membership(membership, groups).await?;
        known
    } else {
        let responsible = match &fields.responsible {
            Some(person) if !person.is_empty() => {
                Some(find_member(app, &tenant, ActorKind::Person, person).await?.actor.id)
            }
            _ => None,
        };
        let now = app.now();
        let actor = ActorRecord {
            id: ActorId(Uuid::now_v7()),
            kind,
            name,
            email,
            description: check_description(fields.description)?,
            responsible,
            status: match kind {
                ActorKind::Person if fields.is_disabled => ActorStatus::Disabled,
                ActorKind::Person => ActorStatus::Invited,
                ActorKind::ServiceAccount => ActorStatus::Active,
            },
            created_at: now,
            modified_at: now,
            last_seen_at: None,
        };
        let membership = Membership {
            actor: actor.id,
            tenant: tenant.clone(),
            rights,
            is_suspended: false,
            rate_limit,
            provisioned: fields.provisioned,
        };
        let id = actor.id;
        app.store().access().insert_actor(actor, membership, groups).await?;
        id
    };
    app.reload_access().await?;
    let member = find_member(app, &tenant, kind, &id.to_string()).await?;
    audit::note(identity, &format!("{}.create", kind.as_str()), &member.actor.name);
    Ok(member)
}

async fn check_room(app: &Context, tenant: &TenantId) -> Result<(), ServiceError> {
    if app.store().access().member_count(tenant).await? < MAX_MEMBERS {
        return Ok(());
    }
    let message = format!("the tenant has {MAX_MEMBERS} people and service accounts, which is the limit");
    Err(ServiceError::new(ErrorCode::Conflict, message).with_details(json!({"limit": MAX_MEMBERS})))
}

/// Creates a link with which a person logs in; earlier ones stop working.
pub async fn invite_again(
    app: &Context,
    identity: &Identity,
    member: &Member,
) -> Result<LoginLink, ServiceError> {
    // Whoever has the link has the rights of the person.
    check_rights(identity, &member.tenant, &member.rights)?;
    if member.status() == ActorStatus::Disabled {
        let message = format!("`{}` is disabled; enable the person first", member.actor.name);
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    let link = app.create_invitation(member.actor.id, &member.tenant).await?;
    audit::note(identity, "person.invite", &member.actor.name);
    Ok(link)
}

/// Changes a person or a service account.
pub async fn update(
    app: &Arc<Context>,
    runs: &RunEngine,
    identity: &Identity,
    member: Member,
    update: MemberUpdate,
) -> Result<Member, ServiceError> {
    // Nobody changes those who may do more.
    check_rights(identity, &member.tenant, &member.rights)?;
    let (tenant, id, kind) = (member.tenant.clone(), member.actor.id, member.actor.kind);
    let status = update.status.filter(|status| *status != member.actor.status);
    // Whoever enables a member gives it access to this tenant, too.
    let is_enabled = update.status == Some(ActorStatus::Active) && member.is_suspended;
    let is_suspended = update.is_suspended.or(is_enabled.then_some(false));
    let is_global = update.name.is_some() || update.email.is_some() || status.is_some();
    if is_global && member.is_shared {
        let message = format!(
            "`{}` is a member of other tenants, too; only a platform admin changes name, e-mail address and status",
            member.actor.name
        );
        identity.require_platform().map_err(|_| ServiceError::new(ErrorCode::Forbidden, message))?;
    }
    check_fields(kind, &update)?;
    protect_local_owner(id, &update)?;
    let is_ended = status == Some(ActorStatus::Disabled) || is_suspended == Some(true);
    if is_ended {
        refuse_self(identity, id, "disable")?;
    }
    let rights = if update.rights.is_empty() {
        None
    } else {
        Some((tenant.clone(), update.rights.apply(identity, &tenant, member.membership)?))
    };
    let rate_limit = match &update.rate_limit {
        Some(rate) => Some((tenant.clone(), checked_rate(identity, rate.as_ref())?)),
        None => None,
    };
    let groups = match &update.groups {
        Some(groups) => Some((tenant.clone(), group_ids(app, identity, &tenant, groups).await?)),
        None => None,
    };
    let responsible = match update.responsible.as_deref() {
        None => None,
        Some("") => Some(None),
        Some(person) => Some(Some(find_member(app, &tenant, ActorKind::Person, person).await?.actor.id)),
    };
    let change = ActorChange {
        name: update.name.as_deref().map(check_name).transpose()?,
        email: update.email.as_deref().map(check_email).transpose()?,
        description: update.description.map(check_description).transpose()?,
        responsible,
        status,
        rights,
        rate_limit,
        groups,
        suspended: is_suspended.map(|is_suspended| (tenant.clone(), is_suspended)),
        provisioned: update.provisioned.map(|provisioned| (tenant.clone(), provisioned)),
    };
    app.store().access().update_actor(id, change).await?;
    app.reload_access().await?;
    if is_ended {
        cancel_runs(app, runs, &tenant, id).await?;
        let everywhere =
            if status == Some(ActorStatus::Disabled) { app.access().tenants() } else { Vec::new() };
        let tenants = everywhere.iter().map(|tenant| &tenant.id).filter(|id| **id != tenant);
        for tenant in std::iter::once(&tenant).chain(tenants) {
            app.store().approvals().requester_lost(tenant.clone(), id).await?;
        }
    }
    let member = find_member(app, &tenant, kind, &id.to_string()).await?;
    let action = match (is_ended, status.is_some() || is_suspended.is_some()) {
        (true, _) => "disable",
        (false, true) => "enable",
        (false, false) => "update",
    };
    audit::note(identity, &format!("{}.{action}", kind.as_str()), &member.actor.name);
    Ok(member)
}

/// Removes a person or a service account from a tenant, with its tokens and sessions there.
pub async fn remove(
    app: &Arc<Context>,
    runs: &RunEngine,
    identity: &Identity,
    member: &Member,
) -> Result<(), ServiceError> {
    let id = member.actor.id;
    // Nobody removes those who may do more.
    check_rights(identity, &member.tenant, &member.rights)?;
    refuse_self(identity, id, "remove")?;
    if id == LOCAL_OWNER && member.tenant.is_default() {
        return Err(local_owner_stays());
    }
    // Before its tokens are gone, by which reduced ones own their runs.
    cancel_runs(app, runs, &member.tenant, id).await?;
    app.store().access().delete_membership(id, member.tenant.clone()).await?;
    app.reload_access().await?;
    app.store().approvals().requester_lost(member.tenant.clone(), id).await?;
    audit::note(identity, &format!("{}.delete", member.actor.kind.as_str()), &member.actor.name);
    Ok(())
}

/// Gives what somebody owns in a tenant to a person.
pub async fn hand_over(
    app: &Context,
    identity: &Identity,
    from: &Member,
    to: &str,
) -> Result<HandedOver, ServiceError> {
    let to = find_member(app, &from.tenant, ActorKind::Person, to).await?.actor;
    if to.id == from.actor.id {
        return Err(ServiceError::bad_request("invalid `to`: name another person"));
    }
    let target = format!("{} to {}", from.actor.name, to.name);
    let done = app.store().access().hand_over(from.tenant.clone(), from.actor.id, (to.id, to.name)).await?;
    audit::note(identity, "person.hand_over", &target);
    Ok(done)
}

fn refuse_self(identity: &Identity, id: ActorId, action: &str) -> Result<(), ServiceError> {
    if identity.actor.as_ref().is_none_or(|own| own.id != id) {
        return Ok(());
    }
    Err(ServiceError::new(ErrorCode::Conflict, format!("you cannot {action} yourself; ask another admin")))
}

/// Returns the rate limits that somebody who is added must not exceed.
fn own_rates(identity: &Identity) -> [Option<CallRate>; 2] {
    [identity.rate_limit, identity.member_rate]
}

fn checked_rate(identity: &Identity, rate: Option<&RateText>) -> Result<Option<CallRate>, ServiceError> {
    let rate = rate.map(RateText::check).transpose()?;
    check_rate(own_rates(identity), rate)?;
    Ok(rate)
}

/// Rejects what would lock the owner of the home folder out.
fn protect_local_owner(id: ActorId, update: &MemberUpdate) -> Result<(), ServiceError> {
    let ends_access = update.is_suspended == Some(true) || update.status == Some(ActorStatus::Disabled);
    let keeps_access = update.rights.is_empty() && update.rate_limit.is_none() && !ends_access;
    if id != LOCAL_OWNER || keeps_access { Ok(()) } else { Err(local_owner_stays()) }
}

fn local_owner_stays() -> ServiceError {
    let message = "the local owner always has all rights, because the home folder gives them; only name, e-mail \
                   address and groups can be changed";
    ServiceError::new(ErrorCode::Conflict, message)
}

/// Cancels the runs that somebody started, with whatever credential, on whatever node.
async fn cancel_runs(
    app: &Arc<Context>,
    runs: &RunEngine,
    tenant: &TenantId,
    id: ActorId,
) -> Result<(), ServiceError> {
    let records = app.store().access().member_records(&[id]).await?;
    let own = records.tokens.iter().map(|token| token.id.to_string());
    for principal in std::iter::once(owner_key(id).to_string()).chain(own) {
        let query =
            RunQuery { principal: Some(principal), limit: CANCELLED_RUNS, ..RunQuery::new(tenant.clone()) };
        let found = app.store().runs().list(&query).await?;
        for run in found.iter().filter(|run| !run.status.is_final()) {
            runs.cancel(tenant, run.id).await?;
        }
    }
    Ok(())
}

/// Finds groups by id or name. Nobody adds others to a group that gives more than they have.
async fn group_ids(
    app: &Context,
    identity: &Identity,
    tenant: &TenantId,
    references: &[String],
) -> Result<Vec<GroupId>, ServiceError> {
    if references.len() > MAX_GROUPS {
        return Err(ServiceError::bad_request(format!("too many `groups`: at most {MAX_GROUPS}")));
    }
    let mut ids: Vec<GroupId> = Vec::new();
    for reference in references {
        let group = find_group(app, tenant, reference).await?;
        check_rights(identity, tenant, &group.rights)?;
        if !ids.contains(&group.id) {
            ids.push(group.id);
        }
    }
    Ok(ids)
}

fn check_fields(kind: ActorKind, update: &MemberUpdate) -> Result<(), ServiceError> {
    let refused = match kind {
        ActorKind::Person => {
            [("description", update.description.is_some()), ("responsible", update.responsible.is_some())]
        }
        ActorKind::ServiceAccount => {
            [("email", update.email.is_some()), ("platform", update.rights.platform.is_some())]
        }
    };
    if let Some((field, _)) = refused.into_iter().find(|(_, is_named)| *is_named) {
        return Err(ServiceError::bad_request(format!("invalid `{field}`: a {} has none", kind.noun())));
    }
    match update.status {
        Some(ActorStatus::Invited) => {
            Err(ServiceError::bad_request("invalid `status`: expected `active` or `disabled`"))
        }
        _ => Ok(()),
    }
}

/// Checks the name of a person, a service account or a group.
pub(super) fn check_name(name: &str) -> Result<String, ServiceError> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        return Err(ServiceError::bad_request(format!(
            "invalid `name`: expected 1 to {MAX_NAME} characters without control characters"
        )));
    }
    Ok(name.to_owned())
}

pub(super) fn check_description(text: String) -> Result<String, ServiceError> {
    if text.chars().count() > MAX_DESCRIPTION || text.contains('\0') {
        return Err(ServiceError::bad_request(format!(
            "invalid `description`: at most {MAX_DESCRIPTION} characters, none of them NUL"
        )));
    }
    Ok(text)
}

/// Checks an e-mail address; an empty one is none. Whether it exists shows when somebody uses it.
fn check_email(text: &str) -> Result<Option<String>, ServiceError> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    valid_email(text).map(Some).ok_or_else(|| {
        ServiceError::bad_request("invalid `email`: expected an address such as `ann@example.com`")
    })
}

/// Returns a text if it has the form of an e-mail address.
pub(crate) fn valid_email(text: &str) -> Option<String> {
    let is_plain = text.len() <= MAX_EMAIL && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    let is_address = text.rsplit_once('@').is_some_and(|(local, domain)| {
        !local.is_empty() && !local.contains('@') && !domain.is_empty() && !domain.contains('*')
    });
    (is_plain && is_address && !text.contains('*')).then(|| text.to_owned())
}
