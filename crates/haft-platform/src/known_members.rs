//! What differs between two states of the people and groups, so that pages can show it live on every node.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_core::actor::{ActorRecord, GroupRecord, Membership};
use haft_core::id::ActorId;
use haft_core::live::{MemberEvent, MemberKind, ObjectAction};
use haft_core::name::TenantId;
use uuid::Uuid;

use crate::access_records::AccessRecords;
use crate::shard_map::ShardMap;

/// Above this number, the changes of a tenant are one event.
const MAX_EVENTS: usize = 20;

/// What identifies a person, a service account or a group.
type Key = (TenantId, Uuid);

/// The people, service accounts and groups of all tenants, as lists show them.
#[derive(Debug, Default, Clone)]
pub(crate) struct KnownMembers {
    shown: ShardMap<Key, Arc<Shown>>,
    /// Where a person or a service account is shown: in tenants, and in groups.
    of_actor: ShardMap<ActorId, Arc<HashSet<Key>>>,
}

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
    pub(crate) fn new(records: &AccessRecords) -> Self {
        let actors: HashMap<ActorId, &ActorRecord> =
            records.actors.iter().map(|actor| (actor.id, actor)).collect();
        let mut known = Self::default();
        let mut of_actor: HashMap<ActorId, HashSet<Key>> = HashMap::new();
        for membership in &records.memberships {
            if let Some(actor) = actors.get(&membership.actor) {
                let key = (membership.tenant.clone(), actor.id.0);
                known.shown.insert(key.clone(), member(actor, membership));
                of_actor.entry(actor.id).or_default().insert(key);
            }
        }
        for group in &records.groups {
            let key = (group.tenant.clone(), group.id.0);
            known.shown.insert(key.clone(), Arc::new(Shown::Group(group.clone())));
            for member in &group.members {
                of_actor.entry(*member).or_default().insert(key.clone());
            }
        }
        for (actor, keys) in of_actor {
            known.of_actor.insert(actor, Arc::new(keys));
        }
        known
    }

    /// Replaces a person or a service account, also in groups; returns the events that show it.
    pub(crate) fn replace_actor(
        &mut self,
        id: ActorId,
        records: &AccessRecords,
    ) -> Vec<(TenantId, MemberEvent)> {
        let before = self.of_actor.get(&id).cloned().unwrap_or_default();
        let mut after: HashMap<Key, Option<Arc<Shown>>> =
            before.iter().map(|key| (key.clone(), None)).collect();
        for actor in records.actors.iter().filter(|actor| actor.id == id) {
            for membership in records.memberships.iter().filter(|membership| membership.actor == id) {
                after.insert((membership.tenant.clone(), id.0), Some(member(actor, membership)));
            }
        }
        let own_groups = records.groups.iter().filter(|group| group.members.contains(&id));
        let own_groups: HashSet<Key> = own_groups.map(|group| (group.tenant.clone(), group.id.0)).collect();
        for key in before.union(&own_groups) {
            if let Some(Shown::Group(group)) = self.shown.get(key).map(|shown| &**shown) {
                let others = group.members.iter().copied().filter(|member| *member != id);
                let mut members: Vec<ActorId> =
                    others.chain(own_groups.contains(key).then_some(id)).collect();
                members.sort_unstable();
                after.insert(
                    key.clone(),
                    Some(Arc::new(Shown::Group(GroupRecord { members, ..group.clone() }))),
                );
            }
        }
        let mut events = Vec::new();
        let mut keys = HashSet::new();
        for (key, shown) in after {
            let event = change(key.1, self.shown.get(&key).map(|old| &**old), shown.as_deref());
            events.extend(event.map(|event| (key.0.clone(), event)));
            let is_own = key.1 == id.0 || own_groups.contains(&key);
            match shown {
                Some(shown) => self.shown.insert(key.clone(), shown),
                None => self.shown.remove(&key),
            }
            keys.extend(Some(key).filter(|_| is_own));
        }
        self.of_actor.insert(id, Arc::new(keys));
        events
    }

    /// Returns the events that lead from an earlier state to this one.
    pub(crate) fn changes_since(&self, before: &Self) -> Vec<(TenantId, MemberEvent)> {
        let keys: HashSet<&Key> = before.shown.keys().chain(self.shown.keys()).collect();
        let mut changes: HashMap<&TenantId, Vec<MemberEvent>> = HashMap::new();
        for key in keys {
            let [old, new] = [before, self].map(|known| known.shown.get(key).map(|shown| &**shown));
            changes.entry(&key.0).or_default().extend(change(key.1, old, new));
        }
        let many = || vec![MemberEvent { change: ObjectAction::Updated, kind: None, id: None }];
        let events = changes.into_iter().flat_map(|(tenant, events)| {
            let events = if events.len() > MAX_EVENTS { many() } else { events };
            events.into_iter().map(|event| (tenant.clone(), event))
        });
        events.collect()
    }
}

fn member(actor: &ActorRecord, membership: &Membership) -> Arc<Shown> {
    // When somebody was last seen changes all the time.
    let actor = ActorRecord { last_seen_at: None, ..actor.clone() };
    Arc::new(Shown::Member(actor, membership.clone()))
}

fn change(id: Uuid, old: Option<&Shown>, new: Option<&Shown>) -> Option<MemberEvent> {
    let (change, shown) = match (old, new) {
        (None, Some(new)) => (ObjectAction::Created, new),
        (Some(old), None) => (ObjectAction::Deleted, old),
        (Some(old), Some(new)) if old != new => (ObjectAction::Updated, new),
        _ => return None,
    };
    Some(MemberEvent { change, kind: Some(shown.kind()), id: Some(id) })
}
