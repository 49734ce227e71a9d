//! Groups: what their members may do besides what their memberships give.

use haft_core::actor::{GroupRecord, Rights};
use haft_core::id::{ActorId, GroupId};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::token::Role;
use haft_store::{GroupChange, MembersChange};
use serde_json::json;
use uuid::Uuid;

use super::directory::{Directory, GroupWithMembers, actor_id, find_group, load_group};
use super::manage::{check_description, check_name};
use super::rights::RightsFields;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::rights::{check_rights, named_tenant};

/// The most groups of a tenant.
const MAX_GROUPS: usize = 1000;
/// The most members of a group.
const MAX_MEMBERS: usize = 1000;

/// A new group.
#[derive(Debug, Default)]
pub struct GroupFields {
    pub name: String,
    pub description: String,
    pub rights: RightsFields,
    pub members: Vec<String>,
    pub tenant: Option<String>,
    /// Marks it as managed by an identity provider, with its id there.
    pub provisioned: Option<Option<String>>,
}

/// Changes of a group; `None` keeps a field.
#[derive(Debug, Default)]
pub struct GroupUpdate {
    pub name: Option<String>,
    pub description: Option<String>,
    pub rights: RightsFields,
    pub members: Option<Vec<String>>,
    /// Members to add; those that others add at the same time stay.
    pub add_members: Vec<String>,
    /// Members to remove; ids of others are ignored.
    pub remove_members: Vec<String>,
    /// Marks it as managed by an identity provider, with its id there.
    pub provisioned: Option<Option<String>>,
}

/// Returns the groups of a tenant, by name.
pub async fn groups(
    app: &Context,
    identity: &Identity,
    tenant: Option<&str>,
) -> Result<Vec<GroupWithMembers>, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, tenant)?;
    Ok(Directory::load(app).await?.groups(&tenant))
}

/// Creates a group.
pub async fn create_group(
    app: &Context,
    identity: &Identity,
    fields: GroupFields,
) -> Result<GroupWithMembers, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, fields.tenant.as_deref())?;
    if app.store().access().group_count(&tenant).await? >= MAX_GROUPS {
        let message = format!("the tenant has {MAX_GROUPS} groups, which is the limit");
        return Err(
            ServiceError::new(ErrorCode::Conflict, message).with_details(json!({"limit": MAX_GROUPS}))
        );
    }
    let none = Rights { role: Role::Viewer, elevated: false, platform: false, tools: AllowList::of_none() };
    let now = app.now();
    let group = GroupRecord {
        id: GroupId(Uuid::now_v7()),
        name: check_group_name(&fields.name)?,
        description: check_description(fields.description)?,
        rights: fields.rights.apply(identity, &tenant, none)?,
        created_at: now,
        modified_at: now,
        members: member_ids(app, &tenant, &fields.members).await?,
        is_provisioned: fields.provisioned.is_some(),
        external_id: fields.provisioned.flatten(),
        tenant,
    };
    let (tenant, id) = (group.tenant.clone(), group.id);
    app.store().access().insert_group(group).await?;
    stored(app, identity, &tenant, (id, "group.create")).await
}

/// Changes a group of the own tenant.
pub async fn update_group(
    app: &Context,
    identity: &Identity,
    (tenant, reference): (Option<&str>, &str),
    update: GroupUpdate,
) -> Result<GroupWithMembers, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, tenant)?;
    let group = find_group(app, &tenant, reference).await?;
    // Nobody changes who gets more than they have themselves.
    check_rights(identity, &tenant, &group.rights)?;
    let members = members_change(app, &tenant, &update).await?;
    let change = GroupChange {
        name: update.name.as_deref().map(check_group_name).transpose()?,
        description: update.description.map(check_description).transpose()?,
        rights: if update.rights.is_empty() {
            None
        } else {
            Some(update.rights.apply(identity, &tenant, group.rights.clone())?)
        },
        members,
        provisioned: update.provisioned,
    };
    let id = group.id;
    app.store().access().update_group(id, change).await?;
    stored(app, identity, &tenant, (id, "group.update")).await
}

/// Deletes a group; its members lose its rights.
pub async fn delete_group(
    app: &Context,
    identity: &Identity,
    (tenant, reference): (Option<&str>, &str),
) -> Result<(), ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, tenant)?;
    let group = find_group(app, &tenant, reference).await?;
    app.store().access().delete_group(group.id).await?;
    app.reload_access().await?;
    audit::note(identity, "group.delete", &group.name);
    Ok(())
}

/// Puts a stored change into force, and returns the group.
async fn stored(
    app: &Context,
    identity: &Identity,
    tenant: &TenantId,
    (id, action): (GroupId, &str),
) -> Result<GroupWithMembers, ServiceError> {
    app.reload_access().await?;
    let found = load_group(app, tenant, id).await?;
    let found = found.ok_or_else(|| ServiceError::not_found("group", &id.to_string()))?;
    audit::note(identity, action, &found.group.name);
    Ok(found)
}

/// A name with a comma could not be listed, and one that looks like an id not be told from one.
fn check_group_name(name: &str) -> Result<String, ServiceError> {
    let name = check_name(name)?;
    if name.contains([',', '*', '/']) || Uuid::try_parse(&name).is_ok() {
        return Err(ServiceError::bad_request("invalid `name`: contains `,`, `*` or `/`, or is an id"));
    }
    Ok(name)
}

/// Returns how an update changes the members.
async fn members_change(
    app: &Context,
    tenant: &TenantId,
    update: &GroupUpdate,
) -> Result<Option<MembersChange>, ServiceError> {
    let edits = !update.add_members.is_empty() || !update.remove_members.is_empty();
    match &update.members {
        Some(_) if edits => Err(ServiceError::bad_request(
            "invalid `members`: it replaces the list; use it without `add_members` and `remove_members`",
        )),
        Some(members) => Ok(Some(MembersChange::Replace(member_ids(app, tenant, members).await?))),
        None if !edits => Ok(None),
        None => Ok(Some(MembersChange::Edit {
            add: member_ids(app, tenant, &update.add_members).await?,
            remove: member_ids(app, tenant, &update.remove_members).await?,
            limit: MAX_MEMBERS,
        })),
    }
}

async fn member_ids(
    app: &Context,
    tenant: &TenantId,
    references: &[String],
) -> Result<Vec<ActorId>, ServiceError> {
    if references.len() > MAX_MEMBERS {
        return Err(ServiceError::bad_request(format!("too many `members`: at most {MAX_MEMBERS}")));
    }
    let mut ids: Vec<ActorId> = Vec::new();
    for reference in references {
        let id = actor_id(app, tenant, reference).await?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}
