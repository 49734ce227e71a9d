//! What differs between two states of the people and groups, so that pages can show it live on every node.

use std::collections::{HashMap, HashSet};

use haft_core::actor::{ActorRecord, GroupRecord, Membership};
use haft_core::id::ActorId;
use haft_core::live::{MemberEvent, MemberKind, ObjectAction};
use haft_core::name::TenantId;
use uuid::Uuid;

/// Above this number, the changes of a tenant are one event.
const MAX_EVENTS: usize = 20;

/// The people, service accounts and groups of all tenants, as lists show them.
#[derive(Debug, Default)]
pub(crate) struct KnownMembers(HashMap<(TenantId, Uuid), Shown>);

#[derive(Debug, PartialEq, Eq)]
enum Shown {
    Member(ActorRecord, Membership),
    Group(GroupRecord),
}

impl Shown {
    fn kind(&self) -> MemberKind {
        match self {
            Shown::Member(actor, _) => actor.kind.into(),
            Shown::Group(_) => MemberKind::Group,
        }
    }
}

impl KnownMembers {
    pub(crate) fn new(actors: &[ActorRecord], memberships: &[Membership], groups: &[GroupRecord]) -> Self {
        let actors: HashMap<ActorId, &ActorRecord> = actors.iter().map(|actor| (actor.id, actor)).collect();
        let members = memberships.iter().filter_map(|membership| {
            let actor = *actors.get(&membership.actor)?;
            // When somebody was last seen changes all the time.
            let actor = ActorRecord { last_seen_at: None, ..actor.clone() };
            Some(((membership.tenant.clone(), actor.id.0), Shown::Member(actor, membership.clone())))
        });
        let groups =
            groups.iter().map(|group| ((group.tenant.clone(), group.id.0), Shown::Group(group.clone())));
        Self(members.chain(groups).collect())
    }

    /// Returns the events that lead from an earlier state to this one.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<(TenantId, MemberEvent)> {
        let keys: HashSet<&(TenantId, Uuid)> = before.0.keys().chain(self.0.keys()).collect();
        let mut changes: HashMap<&TenantId, Vec<MemberEvent>> = HashMap::new();
        for key in keys {
            let (change, shown) = match (before.0.get(key), self.0.get(key)) {
                (None, Some(new)) => (ObjectAction::Created, new),
                (Some(old), None) => (ObjectAction::Deleted, old),
                (Some(old), Some(new)) if old != new => (ObjectAction::Updated, new),
                _ => continue,
            };
            let event = MemberEvent { change, kind: Some(shown.kind()), id: Some(key.1) };
            changes.entry(&key.0).or_default().push(event);
        }
        let many = || vec![MemberEvent { change: ObjectAction::Updated, kind: None, id: None }];
        let events = changes.into_iter().flat_map(|(tenant, events)| {
            let events = if events.len() > MAX_EVENTS { many() } else { events };
            events.into_iter().map(|event| (tenant.clone(), event))
        });
        events.collect()
    }
}
