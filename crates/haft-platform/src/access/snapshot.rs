//! The state of tenants, people, tokens and sessions at one time, and how it follows from what is stored.

use std::collections::HashMap;
use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::actor::{
    ActingAs, ActorKind, ActorRecord, ActorStatus, AssignedRights, GroupRecord, Membership, Rights,
    login_actor, login_key,
};
use haft_core::id::{ActorId, TokenId};
use haft_core::limit::CallRate;
use haft_core::login::SessionRecord;
use haft_core::name::TenantId;
use haft_core::principal::Principal;
use haft_core::tenant::Tenant;
use haft_core::token::TokenRecord;

use super::token::{LastUse, Token};
use crate::access_records::AccessRecords;
use crate::known_members::KnownMembers;
use crate::shard_map::ShardMap;

/// Tenants, people, tokens and sessions. A copy shares what does not differ.
#[derive(Default, Clone)]
pub(super) struct Snapshot {
    pub(super) tenants: Arc<HashMap<TenantId, Arc<Tenant>>>,
    /// The tokens that give access, by the hash of each value that works.
    pub(super) tokens: ShardMap<String, Arc<Token>>,
    pub(super) sessions: ShardMap<String, SessionRecord>,
    pub(super) uses: ShardMap<TokenId, Arc<LastUse>>,
    /// The hashes of the values of each token.
    hashes: ShardMap<TokenId, Vec<String>>,
    /// The people and service accounts that may act, by tenant.
    pub(super) members: ShardMap<(TenantId, ActorId), ()>,
    pub(super) actor_uses: ShardMap<ActorId, Arc<LastUse>>,
    /// What belongs to each person and service account.
    entries: ShardMap<ActorId, Arc<Entries>>,
    /// The people and groups as lists show them.
    pub(super) known: KnownMembers,
}

/// The keys of what belongs to a person or a service account.
#[derive(Default)]
struct Entries {
    tenants: Vec<TenantId>,
    hashes: Vec<String>,
    tokens: Vec<TokenId>,
    sessions: Vec<String>,
}

/// What is stored of one person or service account.
#[derive(Default)]
struct Owned<'a> {
    actor: Option<&'a ActorRecord>,
    memberships: Vec<&'a Membership>,
    assigned: Vec<&'a AssignedRights>,
    groups: Vec<&'a GroupRecord>,
    tokens: Vec<&'a TokenRecord>,
    sessions: Vec<&'a SessionRecord>,
}

impl Snapshot {
    /// Creates the snapshot of what is stored. Times of last uses are those of an earlier one.
    pub(super) fn new(records: &AccessRecords, before: &Self) -> Self {
        let tenants = records.tenants.iter().map(|tenant| (tenant.id.clone(), Arc::new(tenant.clone())));
        let known = KnownMembers::new(records);
        let mut snapshot = Self { tenants: Arc::new(tenants.collect()), known, ..Self::default() };
        let by_id: HashMap<TokenId, &TokenRecord> =
            records.tokens.iter().map(|token| (token.id, token)).collect();
        for (actor, owned) in grouped(records) {
            match actor {
                Some(id) => snapshot.add_owned(id, &owned, &by_id, before),
                None => snapshot.add_ownerless(&owned, &by_id, before),
            }
        }
        snapshot
    }

    /// Removes what belongs to somebody; returns the tenants in which they could act.
    pub(super) fn remove_actor(&mut self, id: ActorId) -> Vec<TenantId> {
        let Some(entries) = self.entries.get(&id).cloned() else { return Vec::new() };
        self.entries.remove(&id);
        self.actor_uses.remove(&id);
        entries.tenants.iter().for_each(|tenant| self.members.remove(&(tenant.clone(), id)));
        entries.hashes.iter().for_each(|hash| self.tokens.remove(hash));
        entries.sessions.iter().for_each(|hash| self.sessions.remove(hash));
        for token in &entries.tokens {
            self.uses.remove(token);
            self.hashes.remove(token);
        }
        entries.tenants.clone()
    }

    /// Adds what belongs to somebody.
    pub(super) fn add_actor(&mut self, id: ActorId, records: &AccessRecords, before: &Self) {
        let by_id: HashMap<TokenId, &TokenRecord> =
            records.tokens.iter().map(|token| (token.id, token)).collect();
        if let Some(owned) = grouped(records).remove(&Some(id)) {
            self.add_owned(id, &owned, &by_id, before);
        }
    }

    /// Returns the values of a token that may give access.
    pub(super) fn values_of(&self, id: TokenId) -> impl Iterator<Item = &Arc<Token>> {
        self.hashes.get(&id).into_iter().flatten().filter_map(|hash| self.tokens.get(hash))
    }

    fn is_enabled(&self, tenant: &TenantId) -> bool {
        self.tenants.get(tenant).is_some_and(|tenant| tenant.enabled)
    }

    fn add_owned(
        &mut self,
        id: ActorId,
        owned: &Owned<'_>,
        by_id: &HashMap<TokenId, &TokenRecord>,
        before: &Self,
    ) {
        let mut entries = Entries::default();
        let members = self.members_of(owned);
        let last_use = before.actor_uses.get(&id).cloned().unwrap_or_default();
        if !members.is_empty() {
            self.actor_uses.insert(id, Arc::clone(&last_use));
        }
        for (tenant, member) in &members {
            self.members.insert((tenant.clone(), id), ());
            entries.tenants.push(tenant.clone());
            // Service accounts do not log in.
            if member.acting.kind == ActorKind::Person {
                let hash = login_key(id, tenant);
                let principal = Arc::new(member.principal(None));
                let last_uses = vec![Arc::clone(&last_use)];
                let token = Token { principal, hash: hash.clone(), expires_at: None, last_uses };
                self.tokens.insert(hash.clone(), Arc::new(token));
                entries.hashes.push(hash);
            }
        }
        for record in owned.tokens.iter().copied() {
            // Without a membership, it belongs to somebody who was disabled or removed.
            let Some(member) = members.get(&record.tenant) else { continue };
            // A token whose parent was revoked gives no access, whatever is stored.
            let Some(inherited) = inherited(record, by_id) else { continue };
            let principal = member.principal(Some(record));
            entries.hashes.extend(self.add_token(record, (principal, inherited), Some(&last_use), before));
            entries.tokens.push(record.id);
        }
        for session in &owned.sessions {
            self.sessions.insert(session.hash.clone(), SessionRecord::clone(session));
            entries.sessions.push(session.hash.clone());
        }
        self.entries.insert(id, Arc::new(entries));
    }

    fn add_ownerless(&mut self, owned: &Owned<'_>, by_id: &HashMap<TokenId, &TokenRecord>, before: &Self) {
        for record in owned.tokens.iter().copied() {
            if self.is_enabled(&record.tenant)
                && let Some(inherited) = inherited(record, by_id)
            {
                self.add_token(record, (Principal::from(record), inherited), None, before);
            }
        }
        for session in &owned.sessions {
            self.sessions.insert(session.hash.clone(), SessionRecord::clone(session));
        }
    }

    /// Adds the values of a token; returns their hashes.
    fn add_token(
        &mut self,
        record: &TokenRecord,
        (principal, Inherited { rates, end }): (Principal, Inherited),
        of_actor: Option<&Arc<LastUse>>,
        before: &Self,
    ) -> Vec<String> {
        let last_use = before.uses.get(&record.id).cloned().unwrap_or_default();
        let last_uses: Vec<_> = [Some(&last_use), of_actor].into_iter().flatten().map(Arc::clone).collect();
        let principal = Arc::new(Principal { ancestor_rates: rates, ..principal });
        // `None` is no end, so `Option::min` would return the wrong one.
        let ends = || record.expires_at.into_iter().chain(end);
        let previous = record.previous.as_ref();
        let previous = previous.map(|old| (&old.hash, ends().chain([old.expires_at]).min()));
        let mut hashes = Vec::new();
        for (hash, expires_at) in [Some((&record.hash, ends().min())), previous].into_iter().flatten() {
            let (principal, last_uses) = (Arc::clone(&principal), last_uses.clone());
            let token = Token { principal, hash: hash.clone(), expires_at, last_uses };
            self.tokens.insert(hash.clone(), Arc::new(token));
            hashes.push(hash.clone());
        }
        self.uses.insert(record.id, last_use);
        self.hashes.insert(record.id, hashes.clone());
        hashes
    }

    /// Returns somebody as a member of each enabled tenant in which they may act.
    fn members_of<'a>(&self, owned: &Owned<'a>) -> HashMap<TenantId, Member<'a>> {
        let mut members = HashMap::new();
        let Some(record) = owned.actor.filter(|actor| actor.status != ActorStatus::Disabled) else {
            return members;
        };
        let may_act = |own: &&&Membership| self.is_enabled(&own.tenant) && !own.is_suspended;
        for membership in owned.memberships.iter().filter(may_act) {
            let acting = ActingAs {
                id: record.id,
                kind: record.kind,
                email: record.email.as_ref().map(|email| email.to_lowercase().into()),
                groups: Vec::new(),
                is_reduced: false,
                token_name: None,
            };
            let tenant = membership.tenant.clone();
            let (rights, rate_limit) = (membership.rights.clone(), membership.rate_limit);
            members.insert(tenant.clone(), Member { tenant, record, rights, rate_limit, acting });
        }
        for group in &owned.groups {
            if let Some(member) = members.get_mut(&group.tenant) {
                member.rights = member.rights.union(&group.rights);
                member.acting.groups.push(group.name.as_str().into());
            }
        }
        for assigned in &owned.assigned {
            if let Some(member) = members.get_mut(&assigned.tenant) {
                member.rights = member.rights.union(&assigned.rights);
            }
        }
        members
    }
}

/// Groups what is stored by whom it belongs to.
fn grouped(records: &AccessRecords) -> HashMap<Option<ActorId>, Owned<'_>> {
    let mut by_actor: HashMap<Option<ActorId>, Owned<'_>> = HashMap::new();
    for actor in &records.actors {
        by_actor.entry(Some(actor.id)).or_default().actor = Some(actor);
    }
    for membership in &records.memberships {
        by_actor.entry(Some(membership.actor)).or_default().memberships.push(membership);
    }
    for assigned in &records.assigned {
        by_actor.entry(Some(assigned.actor)).or_default().assigned.push(assigned);
    }
    for group in &records.groups {
        for member in &group.members {
            by_actor.entry(Some(*member)).or_default().groups.push(group);
        }
    }
    let mut openers: HashMap<&str, Option<ActorId>> = HashMap::new();
    for token in &records.tokens {
        by_actor.entry(token.actor).or_default().tokens.push(token);
        openers.insert(&token.hash, token.actor);
        openers.extend(token.previous.as_ref().map(|previous| (previous.hash.as_str(), token.actor)));
    }
    for session in &records.sessions {
        let opener = login_actor(&session.token_hash);
        let opener = opener.or_else(|| openers.get(session.token_hash.as_str()).copied().flatten());
        by_actor.entry(opener).or_default().sessions.push(session);
    }
    by_actor
}

/// Somebody who may act in a tenant.
struct Member<'a> {
    tenant: TenantId,
    record: &'a ActorRecord,
    /// Those of the membership and of all groups together.
    rights: Rights,
    rate_limit: Option<CallRate>,
    acting: ActingAs,
}

impl Member<'_> {
    /// Returns its principal: with a token, what the token and its owner may do both.
    fn principal(&self, token: Option<&TokenRecord>) -> Principal {
        let own = &self.rights;
        let of_token = token.map(|token| Rights {
            role: token.role,
            elevated: token.elevated,
            platform: token.platform,
            tools: token.tools.clone(),
        });
        let rights = of_token.map_or_else(|| own.clone(), |rights| own.intersection(&rights));
        let is_reduced = rights.role < own.role || !rights.tools.covers(&own.tools);
        let principal = token.map_or_else(
            || Principal::new(self.tenant.clone(), self.record.name.as_str(), rights.role),
            Principal::from,
        );
        // The tokens that are not stored keep the names by which rules know them.
        let unstored = token.filter(|token| token.id.0.is_nil());
        let token_name = unstored.map(|token| token.name.as_str().into());
        Principal {
            actor: Some(Arc::new(ActingAs { is_reduced, token_name, ..self.acting.clone() })),
            member_rate: self.rate_limit,
            name: self.record.name.as_str().into(),
            role: rights.role,
            elevated: rights.elevated,
            platform: rights.platform,
            tools: rights.tools,
            ..principal
        }
    }
}

/// What a token has from the tokens that it comes from.
struct Inherited {
    /// Their rate limits, that of the first one first, and equal ones once.
    rates: Arc<[(TokenId, CallRate)]>,
    /// When the first of them expires: a token does not outlive those that it comes from, even if they were rotated.
    end: Option<Timestamp>,
}

/// Returns what a token has from the tokens that it comes from; `None` if one of these does not exist.
fn inherited(record: &TokenRecord, tokens: &HashMap<TokenId, &TokenRecord>) -> Option<Inherited> {
    let mut ancestors = Vec::new();
    let mut next = record.parent;
    while let Some(id) = next {
        let token = *tokens.get(&id)?;
        // No token is its own ancestor; a database that says so gives no access.
        if ancestors.len() == tokens.len() {
            return None;
        }
        ancestors.push(token);
        next = token.parent;
    }
    let end = ancestors.iter().filter_map(|token| token.expires_at).min();
    let mut rates: Vec<(TokenId, CallRate)> = Vec::new();
    for token in ancestors.into_iter().rev() {
        if let Some(rate) = token.rate_limit.filter(|rate| rates.iter().all(|(_, other)| other != rate)) {
            rates.push((token.id, rate));
        }
    }
    Some(Inherited { rates: rates.into(), end })
}
