//! Tenants, people, tokens and sessions in memory. Lookups are lock-free; a change replaces the whole snapshot.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use haft_core::actor::{
    ActingAs, ActorKind, ActorRecord, ActorStatus, GroupRecord, Membership, Rights, login_key,
};
use haft_core::id::{ActorId, TokenId};
use haft_core::limit::CallRate;
use haft_core::login::SessionRecord;
use haft_core::name::TenantId;
use haft_core::principal::{ActingAgent, Principal};
use haft_core::tenant::{Tenant, TenantLimits};
use haft_core::token::TokenRecord;
use haft_core::{Timestamp, hash};
use tokio::sync::watch;

/// How often an identity that holds a connection is checked besides changes, so that an expiry is noticed.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Uses within this time are noted once, so that busy tokens do not contend.
const USE_RESOLUTION_MICROS: i64 = 1_000_000;

/// All tenants, tokens and sessions.
#[derive(Default)]
pub struct Access {
    snapshot: ArcSwap<Snapshot>,
    /// Changes whenever the snapshot does.
    changed: watch::Sender<()>,
    /// Serialises reloads, so that an older state never replaces a newer one.
    pub reload: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Snapshot {
    tenants: HashMap<TenantId, Arc<Tenant>>,
    /// The tokens that give access, by the hash of each value that works.
    tokens: HashMap<String, Arc<Token>>,
    sessions: HashMap<String, SessionRecord>,
    uses: HashMap<TokenId, Arc<LastUse>>,
    /// The people and service accounts that may act, by tenant.
    members: HashSet<(TenantId, ActorId)>,
    actor_uses: HashMap<ActorId, Arc<LastUse>>,
}

/// A value of a token that gives access, or the login of a person without one.
#[derive(Debug)]
pub struct Token {
    pub principal: Arc<Principal>,
    /// The hash of the value, or the [`login_key`] of a person.
    pub hash: String,
    pub expires_at: Option<Timestamp>,
    /// The last use of the token, and of its person or service account.
    last_uses: Vec<Arc<LastUse>>,
}

/// When a token, a person or a service account was last used, in microseconds.
#[derive(Debug, Default)]
struct LastUse {
    at: AtomicI64,
    saved: AtomicI64,
}

/// The state that [`Access::replace`] loads.
pub struct AccessRecords {
    pub tenants: Vec<Tenant>,
    pub tokens: Vec<TokenRecord>,
    pub sessions: Vec<SessionRecord>,
    pub actors: Vec<ActorRecord>,
    pub memberships: Vec<Membership>,
    pub groups: Vec<GroupRecord>,
}

/// Who had access until now.
pub struct LostAccess {
    /// The tenants that no longer exist.
    pub gone_tenants: Vec<TenantId>,
    /// The tenants that no longer exist or were disabled.
    pub stopped_tenants: Vec<TenantId>,
    /// The people and service accounts that were disabled or removed, by tenant.
    pub actors: Vec<(TenantId, ActorId)>,
}

impl Access {
    /// Replaces everything; returns who has no access any more. Tokens of disabled tenants and people give none.
    pub fn replace(&self, records: AccessRecords) -> LostAccess {
        let AccessRecords { tenants, tokens, sessions, actors, memberships, groups } = records;
        let before = self.snapshot.load_full();
        let tenants: HashMap<_, _> =
            tenants.into_iter().map(|tenant| (tenant.id.clone(), Arc::new(tenant))).collect();
        let is_enabled = |tenant: &TenantId| tenants.get(tenant).is_some_and(|tenant| tenant.enabled);
        let mut snapshot = Snapshot::default();
        let members = members(&actors, &memberships, &groups, &is_enabled);
        for member in members.values() {
            let last_use = before.actor_uses.get(&member.acting.id).cloned().unwrap_or_default();
            snapshot.actor_uses.insert(member.acting.id, Arc::clone(&last_use));
            // Service accounts do not log in.
            if member.acting.kind == ActorKind::Person {
                let hash = login_key(member.acting.id, &member.tenant);
                let principal = Arc::new(member.principal(None));
                let token =
                    Token { principal, hash: hash.clone(), expires_at: None, last_uses: vec![last_use] };
                snapshot.tokens.insert(hash, Arc::new(token));
            }
        }
        let by_id: HashMap<TokenId, &TokenRecord> = tokens.iter().map(|token| (token.id, token)).collect();
        for record in tokens.iter().filter(|token| is_enabled(&token.tenant)) {
            // A token whose parent was revoked gives no access, whatever is stored.
            let Some(Inherited { rates, end }) = inherited(record, &by_id) else { continue };
            let member = record.actor.map(|actor| members.get(&(record.tenant.clone(), actor)));
            let principal = match member {
                None => Principal::from(record),
                Some(Some(member)) => member.principal(Some(record)),
                // It belongs to somebody who was disabled or removed.
                Some(None) => continue,
            };
            let last_use = before.uses.get(&record.id).cloned().unwrap_or_default();
            let of_actor = record.actor.and_then(|actor| snapshot.actor_uses.get(&actor)).cloned();
            let last_uses: Vec<_> = [Some(Arc::clone(&last_use)), of_actor].into_iter().flatten().collect();
            let principal = Arc::new(Principal { ancestor_rates: rates, ..principal });
            let mut add = |hash: &str, expires_at: Option<Timestamp>| {
                let (principal, last_uses) = (Arc::clone(&principal), last_uses.clone());
                let token = Token { principal, hash: hash.to_owned(), expires_at, last_uses };
                snapshot.tokens.insert(hash.to_owned(), Arc::new(token));
            };
            // `None` is no end, so `Option::min` would return the wrong one.
            let ends = || record.expires_at.into_iter().chain(end);
            add(&record.hash, ends().min());
            if let Some(previous) = &record.previous {
                add(&previous.hash, ends().chain([previous.expires_at]).min());
            }
            snapshot.uses.insert(record.id, last_use);
        }
        snapshot.sessions = sessions.into_iter().map(|session| (session.hash.clone(), session)).collect();
        snapshot.members = members.into_keys().collect();
        let actors = before.members.difference(&snapshot.members).cloned().collect();
        let gone_tenants = before.tenants.keys().filter(|id| !tenants.contains_key(*id)).cloned().collect();
        let was_enabled = before.tenants.values().filter(|tenant| tenant.enabled).map(|tenant| &tenant.id);
        let stopped_tenants = was_enabled.filter(|id| !is_enabled(id)).cloned().collect();
        snapshot.tenants = tenants;
        self.snapshot.store(Arc::new(snapshot));
        self.changed.send_replace(());
        LostAccess { gone_tenants, stopped_tenants, actors }
    }

    /// Finds a token by its value. The lookup is by hash, so that its timing reveals nothing about the token.
    pub fn token(&self, value: &str, now: Timestamp) -> Option<Arc<Token>> {
        self.token_by_hash(&hash::of_bytes(value.as_bytes()), now)
    }

    /// Finds a token by the hash of its value, or the login of a person by its key, and notes its use.
    pub fn token_by_hash(&self, hash: &str, now: Timestamp) -> Option<Arc<Token>> {
        let snapshot = self.snapshot.load();
        let token = snapshot.tokens.get(hash).filter(|token| token.is_valid(now))?;
        token.last_uses.iter().for_each(|last_use| last_use.note(now));
        Some(Arc::clone(token))
    }

    /// Returns a principal as it is today; `None` if its token was revoked or has expired, or its person was disabled.
    pub fn current(&self, principal: &Principal, now: Timestamp) -> Option<Arc<Principal>> {
        let snapshot = self.snapshot.load();
        let token = match (principal.token, &principal.actor) {
            (None, None) => return Some(Arc::new(principal.clone())),
            (None, Some(actor)) => snapshot.tokens.get(&login_key(actor.id, &principal.tenant))?,
            (Some(id), _) => {
                // A rotated token has two values for a while: one that is still valid decides.
                let mut values = snapshot.tokens.values().filter(|token| token.principal.token == Some(id));
                values.find(|token| token.is_valid(now))?
            }
        };
        Some(match &principal.agent {
            // The agent still calls on its behalf, with the rights that the token has now.
            Some(agent) => Arc::new(token.principal.acting(ActingAgent::clone(agent))),
            None => Arc::clone(&token.principal),
        })
    }

    /// Returns the principal of a stored token; `None` if whoever it belongs to has no access.
    pub fn principal_of_token(&self, id: TokenId) -> Option<Arc<Principal>> {
        let snapshot = self.snapshot.load();
        let found = snapshot.tokens.values().find(|token| token.principal.token == Some(id))?;
        Some(Arc::clone(&found.principal))
    }

    /// Returns the principal of a person who is logged in to a tenant; `None` if the person has no access.
    pub fn principal_of_person(&self, id: ActorId, tenant: &TenantId) -> Option<Arc<Principal>> {
        let snapshot = self.snapshot.load();
        snapshot.tokens.get(&login_key(id, tenant)).map(|login| Arc::clone(&login.principal))
    }

    /// Finds a session by the hash of its cookie.
    pub fn session(&self, hash: &str, now: Timestamp) -> Option<SessionRecord> {
        self.snapshot.load().sessions.get(hash).filter(|session| now < session.expires_at).cloned()
    }

    /// Returns a tenant.
    pub fn tenant(&self, id: &TenantId) -> Option<Arc<Tenant>> {
        self.snapshot.load().tenants.get(id).cloned()
    }

    /// Returns the limits of a tenant.
    pub fn limits(&self, id: &TenantId) -> TenantLimits {
        self.snapshot
            .load()
            .tenants
            .get(id)
            .map_or_else(TenantLimits::default, |tenant| tenant.settings.limits)
    }

    /// Returns the tokens of a tenant that have a rate limit, by name: each with its id and rate.
    pub fn limited_tokens(&self, tenant: &TenantId) -> Vec<Arc<Principal>> {
        let snapshot = self.snapshot.load();
        let is_limited = |token: &&Arc<Token>| {
            token.principal.tenant == *tenant && token.principal.token_rates().next().is_some()
        };
        let mut found: Vec<_> =
            snapshot.tokens.values().filter(is_limited).map(|token| Arc::clone(&token.principal)).collect();
        found.sort_by(|a, b| (&a.name, a.token.map(|id| id.0)).cmp(&(&b.name, b.token.map(|id| id.0))));
        // A token that is being rotated has two values.
        found.dedup_by_key(|principal| principal.token);
        found
    }

    /// Returns all tenants, by id.
    pub fn tenants(&self) -> Vec<Arc<Tenant>> {
        let mut tenants: Vec<_> = self.snapshot.load().tenants.values().cloned().collect();
        tenants.sort_by(|a, b| a.id.cmp(&b.id));
        tenants
    }

    /// Returns when a token was last used on this node.
    pub fn last_use(&self, id: TokenId) -> Option<Timestamp> {
        let at = self.snapshot.load().uses.get(&id)?.at.load(Ordering::Relaxed);
        Timestamp::from_microsecond(at).ok().filter(|_| at > 0)
    }

    /// Returns when a person or a service account was last seen on this node.
    pub fn last_seen(&self, id: ActorId) -> Option<Timestamp> {
        let at = self.snapshot.load().actor_uses.get(&id)?.at.load(Ordering::Relaxed);
        Timestamp::from_microsecond(at).ok().filter(|_| at > 0)
    }

    /// Returns the sessions that a token, or a person without one, has opened.
    pub fn sessions_of(&self, hashes: &HashSet<String>, now: Timestamp) -> usize {
        let snapshot = self.snapshot.load();
        let is_open =
            |session: &&SessionRecord| now < session.expires_at && hashes.contains(&session.token_hash);
        snapshot.sessions.values().filter(is_open).count()
    }

    /// Returns the uses of tokens, people and service accounts that are not saved yet, and marks them as saved.
    pub fn take_uses(&self) -> UnsavedUses {
        let snapshot = self.snapshot.load();
        // Tokens that are not stored have a nil id.
        let tokens = snapshot.uses.iter().filter(|(id, _)| !id.0.is_nil());
        UnsavedUses {
            tokens: tokens.filter_map(|(id, last_use)| Some((*id, last_use.take()?))).collect(),
            actors: snapshot
                .actor_uses
                .iter()
                .filter_map(|(id, last_use)| Some((*id, last_use.take()?)))
                .collect(),
        }
    }

    /// Completes when tokens or sessions may have changed or expired; at the latest after a second.
    pub async fn changed(&self) {
        // An error is a timeout, or the end of the server.
        let _ = tokio::time::timeout(EXPIRY_CHECK_INTERVAL, self.changed.subscribe().changed()).await;
    }

    /// Completes when a token no longer gives access.
    pub async fn revoked(&self, token: &Token, now: impl Fn() -> Timestamp) {
        let mut changed = self.changed.subscribe();
        loop {
            let is_known = self.snapshot.load().tokens.contains_key(&token.hash);
            if !is_known || !token.is_valid(now()) {
                return;
            }
            // An error is a timeout, or the end of the server.
            let _ = tokio::time::timeout(EXPIRY_CHECK_INTERVAL, changed.changed()).await;
        }
    }
}

/// Uses that are not saved yet.
pub struct UnsavedUses {
    pub tokens: Vec<(TokenId, Timestamp)>,
    pub actors: Vec<(ActorId, Timestamp)>,
}

/// Somebody who may act in a tenant.
struct Member<'a> {
    tenant: TenantId,
    record: &'a ActorRecord,
    /// Those of the membership and of all groups together.
    rights: Rights,
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
        Principal {
            actor: Some(Arc::new(ActingAs { is_reduced, ..self.acting.clone() })),
            name: self.record.name.as_str().into(),
            role: rights.role,
            elevated: rights.elevated,
            platform: rights.platform,
            tools: rights.tools,
            ..principal
        }
    }
}

/// Returns everybody who may act in an enabled tenant.
fn members<'a>(
    actors: &'a [ActorRecord],
    memberships: &[Membership],
    groups: &[GroupRecord],
    is_enabled: &impl Fn(&TenantId) -> bool,
) -> HashMap<(TenantId, ActorId), Member<'a>> {
    let actors: HashMap<ActorId, &ActorRecord> = actors.iter().map(|actor| (actor.id, actor)).collect();
    let mut members = HashMap::new();
    for membership in memberships.iter().filter(|membership| is_enabled(&membership.tenant)) {
        let Some(record) = actors.get(&membership.actor) else { continue };
        if record.status == ActorStatus::Disabled {
            continue;
        }
        let acting = ActingAs {
            id: record.id,
            kind: record.kind,
            email: record.email.as_ref().map(|email| email.to_lowercase().into()),
            groups: Vec::new(),
            is_reduced: false,
        };
        let tenant = membership.tenant.clone();
        let member = Member { tenant: tenant.clone(), record, rights: membership.rights.clone(), acting };
        members.insert((tenant, record.id), member);
    }
    for group in groups {
        for actor in &group.members {
            if let Some(member) = members.get_mut(&(group.tenant.clone(), *actor)) {
                member.rights = member.rights.union(&group.rights);
                member.acting.groups.push(group.name.as_str().into());
            }
        }
    }
    members
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

impl Token {
    fn is_valid(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|end| now < end)
    }
}

impl LastUse {
    fn note(&self, now: Timestamp) {
        let now = now.as_microsecond();
        if now - self.at.load(Ordering::Relaxed) >= USE_RESOLUTION_MICROS {
            self.at.store(now, Ordering::Relaxed);
        }
    }

    /// Returns the use if it is not saved yet, and marks it as saved.
    fn take(&self) -> Option<Timestamp> {
        let at = self.at.load(Ordering::Relaxed);
        let is_new = self.saved.swap(at, Ordering::Relaxed) < at;
        is_new.then(|| Timestamp::from_microsecond(at).ok()).flatten()
    }
}
