//! Everybody of an installation, as one request sees them.

use std::collections::{HashMap, HashSet};

use haft_core::Timestamp;
use haft_core::actor::{
    ActorKind, ActorRecord, ActorStatus, AssignedRights, GroupRecord, Membership, Provisioned, Rights,
    login_key,
};
use haft_core::id::{ActorId, GroupId};
use haft_core::limit::CallRate;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::token::TokenRecord;
use haft_store::{MemberKey, MemberRecords};

use crate::context::Context;
use crate::error::ServiceError;

/// A person or a service account as a member of a tenant.
#[derive(Debug, Clone)]
pub struct Member {
    pub actor: ActorRecord,
    pub tenant: TenantId,
    /// What the membership gives.
    pub membership: Rights,
    /// The groups of the tenant.
    pub groups: Vec<(GroupId, String)>,
    /// Whether it has no access to the tenant, whatever the status of the actor.
    pub is_suspended: bool,
    /// How many calls it may make with all credentials together.
    pub rate_limit: Option<CallRate>,
    /// What an identity provider says about it; `None` if none manages it.
    pub provisioned: Option<Provisioned>,
    /// What membership, groups and the rules of issuers give together.
    pub rights: Rights,
    /// Whether it is a member of other tenants, too.
    pub is_shared: bool,
    /// The person who is responsible for a service account.
    pub responsible: Option<ActorRecord>,
    /// The number of tokens in the tenant, without expired ones.
    pub tokens: usize,
    /// The number of open sessions.
    pub sessions: usize,
    pub last_seen_at: Option<Timestamp>,
}

impl Member {
    /// Returns the status in the tenant: to it, a suspended member is a disabled one.
    pub fn status(&self) -> ActorStatus {
        status(&self.actor, self.is_suspended)
    }
}

fn status(actor: &ActorRecord, is_suspended: bool) -> ActorStatus {
    if is_suspended { ActorStatus::Disabled } else { actor.status }
}

/// Which members to list.
#[derive(Debug, Default)]
pub struct MemberFilter<'a> {
    /// A part of the name or the e-mail address.
    pub q: Option<&'a str>,
    pub status: Option<ActorStatus>,
}

/// A group with its members.
#[derive(Debug, Clone)]
pub struct GroupWithMembers {
    pub group: GroupRecord,
    pub members: Vec<ActorRecord>,
}

/// All people, service accounts, groups and tokens.
pub(crate) struct Directory {
    actors: HashMap<ActorId, ActorRecord>,
    memberships: Vec<Membership>,
    groups: Vec<GroupRecord>,
    tokens: Vec<TokenRecord>,
    /// What the rules of issuers assign to an actor.
    assigned_to: HashMap<ActorId, Vec<AssignedRights>>,
    /// The positions of what belongs to an actor.
    groups_of: HashMap<ActorId, Vec<usize>>,
    tokens_of: HashMap<ActorId, Vec<usize>>,
    /// The number of tenants of an actor.
    tenants_of: HashMap<ActorId, usize>,
    /// The numbers of open sessions, by what has opened them.
    sessions: HashMap<String, usize>,
}

impl Directory {
    pub(crate) async fn load(app: &Context) -> Result<Self, ServiceError> {
        let access = app.store().access();
        let records = MemberRecords {
            actors: access.actors().await?,
            memberships: access.memberships().await?,
            assigned: access.assigned_rights().await?,
            groups: access.groups().await?,
            tokens: access.tokens().await?,
        };
        Ok(Self::new(app, records))
    }

    /// Loads some people and service accounts, without others.
    async fn load_some(app: &Context, ids: &[ActorId]) -> Result<Self, ServiceError> {
        Ok(Self::new(app, app.store().access().member_records(ids).await?))
    }

    /// Loads one member of a tenant.
    pub(crate) async fn load_member(
        app: &Context,
        tenant: &TenantId,
        key: MemberKey<'_>,
    ) -> Result<Option<Member>, ServiceError> {
        let Some(id) = app.store().access().member_id(tenant, key).await? else { return Ok(None) };
        let directory = Self::load_some(app, &[id]).await?;
        let own = directory.memberships.iter().find(|own| own.tenant == *tenant && own.actor == id);
        let actor = directory.actors.get(&id);
        Ok(actor.zip(own).map(|(actor, membership)| directory.member(app, actor, membership)))
    }

    fn new(app: &Context, records: MemberRecords) -> Self {
        let MemberRecords { actors, memberships, assigned, groups, tokens } = records;
        let mut groups_of: HashMap<ActorId, Vec<usize>> = HashMap::new();
        for (index, group) in groups.iter().enumerate() {
            for member in &group.members {
                groups_of.entry(*member).or_default().push(index);
            }
        }
        let mut tokens_of: HashMap<ActorId, Vec<usize>> = HashMap::new();
        for (index, actor) in
            tokens.iter().enumerate().filter_map(|(index, token)| Some((index, token.actor?)))
        {
            tokens_of.entry(actor).or_default().push(index);
        }
        let mut tenants_of = HashMap::new();
        for membership in &memberships {
            *tenants_of.entry(membership.actor).or_default() += 1;
        }
        let mut assigned_to: HashMap<ActorId, Vec<AssignedRights>> = HashMap::new();
        for rights in assigned {
            assigned_to.entry(rights.actor).or_default().push(rights);
        }
        let actors = actors.into_iter().map(|actor| (actor.id, actor)).collect();
        let sessions = app.access().open_sessions(app.now());
        Self { actors, memberships, groups, tokens, assigned_to, groups_of, tokens_of, tenants_of, sessions }
    }

    /// Returns the members of a tenant of one kind, by name.
    pub(crate) fn members(
        &self,
        app: &Context,
        tenant: &TenantId,
        kind: ActorKind,
        filter: &MemberFilter<'_>,
    ) -> Vec<Member> {
        let text = filter.q.map(str::to_lowercase);
        let contains = |actor: &ActorRecord| {
            text.as_ref().is_none_or(|text| {
                let fields = [Some(&actor.name), actor.email.as_ref()];
                fields.into_iter().flatten().any(|field| field.to_lowercase().contains(text.as_str()))
            })
        };
        let is_wanted = |actor: &ActorRecord| actor.kind == kind && contains(actor);
        let has_status = |actor: &ActorRecord, membership: &Membership| {
            filter.status.is_none_or(|wanted| status(actor, membership.is_suspended) == wanted)
        };
        let of_tenant = self.memberships.iter().filter(|membership| membership.tenant == *tenant);
        let found = of_tenant.filter_map(|membership| {
            let actor = self.actors.get(&membership.actor).filter(|actor| is_wanted(actor))?;
            has_status(actor, membership).then(|| self.member(app, actor, membership))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_by_cached_key(|member| (member.actor.name.to_lowercase(), member.actor.id));
        found
    }

    /// Returns the groups of a tenant with their members, by name.
    pub(crate) fn groups(&self, tenant: &TenantId) -> Vec<GroupWithMembers> {
        let own = self.groups.iter().filter(|group| group.tenant == *tenant);
        let mut groups: Vec<_> = own
            .map(|group| {
                let members = group.members.iter().filter_map(|id| self.actors.get(id)).cloned();
                let mut members: Vec<_> = members.collect();
                members.sort_by_cached_key(|actor| (actor.name.to_lowercase(), actor.id));
                GroupWithMembers { group: group.clone(), members }
            })
            .collect();
        groups.sort_by(|a, b| a.group.name.cmp(&b.group.name));
        groups
    }

    fn member(&self, app: &Context, actor: &ActorRecord, membership: &Membership) -> Member {
        let tenant = &membership.tenant;
        let groups = self.groups_of.get(&actor.id).into_iter().flatten();
        let groups = groups.filter_map(|index| self.groups.get(*index));
        let groups: Vec<&GroupRecord> = groups.filter(|group| group.tenant == *tenant).collect();
        let assigned = self.assigned_to.get(&actor.id).into_iter().flatten();
        let assigned = assigned.filter(|own| own.tenant == *tenant).map(|own| &own.rights);
        let added = groups.iter().map(|group| &group.rights).chain(assigned);
        let rights = added.fold(membership.rights.clone(), |rights, added| rights.union(added));
        let now = app.now();
        let own = self.tokens_of.get(&actor.id).into_iter().flatten();
        let own = own
            .filter_map(|index| self.tokens.get(*index))
            .filter(|token| token.tenant == *tenant && token.expires_at.is_none_or(|end| now < end));
        let own: Vec<&TokenRecord> = own.collect();
        let login = login_key(actor.id, tenant);
        let hashes = own.iter().map(|token| &token.hash).chain([&login]);
        Member {
            actor: actor.clone(),
            tenant: tenant.clone(),
            membership: membership.rights.clone(),
            groups: groups.iter().map(|group| (group.id, group.name.clone())).collect(),
            rights,
            is_suspended: membership.is_suspended,
            rate_limit: membership.rate_limit,
            provisioned: membership.provisioned.clone(),
            is_shared: self.tenants_of.get(&actor.id).is_some_and(|tenants| *tenants > 1),
            responsible: actor.responsible.and_then(|id| self.actors.get(&id)).cloned(),
            tokens: own.len(),
            sessions: hashes.filter_map(|hash| self.sessions.get(hash)).sum(),
            last_seen_at: actor.last_seen_at.max(app.access().last_seen(actor.id)),
        }
    }
}

/// Finds a member of a tenant by its id, its e-mail address, or a name that no other member has.
pub(super) async fn find_member(
    app: &Context,
    tenant: &TenantId,
    kind: ActorKind,
    reference: &str,
) -> Result<Member, ServiceError> {
    let id = member_id(app, tenant, kind, reference).await?;
    let found = Directory::load_member(app, tenant, MemberKey::Id(id)).await?;
    found.ok_or_else(|| ServiceError::not_found(kind.noun(), reference))
}

/// Finds a person, or else a service account, of a tenant by its id, its e-mail address, or a name that no other one has.
pub(crate) async fn find_actor(
    app: &Context,
    tenant: &TenantId,
    reference: &str,
) -> Result<Member, ServiceError> {
    let id = actor_id(app, tenant, reference).await?;
    let found = Directory::load_member(app, tenant, MemberKey::Id(id)).await?;
    found.ok_or_else(|| ServiceError::not_found(ActorKind::ServiceAccount.noun(), reference))
}

/// Returns the id of a person, or else of a service account.
pub(super) async fn actor_id(
    app: &Context,
    tenant: &TenantId,
    reference: &str,
) -> Result<ActorId, ServiceError> {
    // A name that several people have is an error, one that nobody has may be a service account's.
    match member_id(app, tenant, ActorKind::Person, reference).await {
        Err(error) if error.code == ErrorCode::NotFound => {
            member_id(app, tenant, ActorKind::ServiceAccount, reference).await
        }
        found => found,
    }
}

async fn member_id(
    app: &Context,
    tenant: &TenantId,
    kind: ActorKind,
    reference: &str,
) -> Result<ActorId, ServiceError> {
    let access = app.store().access();
    let key = match reference.parse::<ActorId>() {
        Ok(id) => MemberKey::Id(id),
        Err(_) => MemberKey::Email(reference),
    };
    if let Some(id) = access.member_id(tenant, key).await?
        && access.actors_by_id([id]).await?.iter().any(|actor| actor.kind == kind)
    {
        return Ok(id);
    }
    match &*access.members_named(tenant, kind, reference).await? {
        [] => Err(ServiceError::not_found(kind.noun(), reference)),
        [id] => Ok(*id),
        several => {
            let ids: Vec<String> = several.iter().map(|id| format!("`{id}`")).collect();
            let message = format!("several of this name: use the id, one of {}", ids.join(", "));
            Err(ServiceError::bad_request(message))
        }
    }
}

/// Returns which of some ids are those of people of a tenant.
pub(crate) async fn people_of(
    app: &Context,
    tenant: &TenantId,
    ids: impl IntoIterator<Item = ActorId>,
) -> Result<HashSet<ActorId>, ServiceError> {
    let ids: Vec<ActorId> = ids.into_iter().collect();
    let records = app.store().access().member_records(&ids).await?;
    let people: HashSet<ActorId> =
        records.actors.iter().filter(|actor| actor.kind == ActorKind::Person).map(|actor| actor.id).collect();
    let members = records.memberships.iter().filter(|membership| membership.tenant == *tenant);
    Ok(members.map(|membership| membership.actor).filter(|id| people.contains(id)).collect())
}

/// Finds a group of a tenant by its id or name, without its members.
pub(super) async fn find_group(
    app: &Context,
    tenant: &TenantId,
    reference: &str,
) -> Result<GroupRecord, ServiceError> {
    let found = app.store().access().find_group(tenant, reference).await?;
    found.ok_or_else(|| ServiceError::not_found("group", reference))
}

/// Loads a group of a tenant with its members.
pub(crate) async fn load_group(
    app: &Context,
    tenant: &TenantId,
    id: GroupId,
) -> Result<Option<GroupWithMembers>, ServiceError> {
    let access = app.store().access();
    let Some(group) = access.find_group(tenant, &id.to_string()).await? else { return Ok(None) };
    let mut members = access.group_members(id).await?;
    members.sort_by_cached_key(|actor| (actor.name.to_lowercase(), actor.id));
    let group = GroupRecord { members: members.iter().map(|actor| actor.id).collect(), ..group };
    Ok(Some(GroupWithMembers { group, members }))
}
