//! Tenants, people, tokens and sessions in memory. Lookups are lock-free; a change replaces the snapshot.

mod snapshot;
mod token;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use arc_swap::ArcSwap;
use haft_core::actor::{ActingAs, ENVIRONMENT_TOKEN, LOCAL_OWNER, login_key, owner_key};
use haft_core::id::{ActorId, TokenId};
use haft_core::live::MemberEvent;
use haft_core::login::SessionRecord;
use haft_core::name::TenantId;
use haft_core::principal::{ActingAgent, Principal};
use haft_core::tenant::{Tenant, TenantLimits};
use haft_core::{Timestamp, hash};
use tokio::sync::watch;
use uuid::Uuid;

use self::snapshot::Snapshot;
pub use self::token::Token;
use crate::access_records::AccessRecords;

/// How often an identity that holds a connection is checked besides changes, so that an expiry is noticed.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// All tenants, tokens and sessions.
#[derive(Default)]
pub struct Access {
    snapshot: ArcSwap<Snapshot>,
    /// Changes whenever the snapshot does.
    changed: watch::Sender<()>,
    /// The generation of the store that was loaded last. The lock serialises reloads, so that an older state never replaces
    /// a newer one.
    pub reload: tokio::sync::Mutex<Option<i64>>,
}

/// Who had access until now, and who changed.
pub struct LostAccess {
    /// The tenants that no longer exist.
    pub gone_tenants: Vec<TenantId>,
    /// The tenants that no longer exist or were disabled.
    pub stopped_tenants: Vec<TenantId>,
    /// The people and service accounts that were disabled or removed, by tenant.
    pub actors: Vec<(TenantId, ActorId)>,
    /// The people, service accounts and groups that changed.
    pub changed_members: Vec<(TenantId, MemberEvent)>,
}

impl Access {
    /// Replaces everything; returns who has no access any more. Tokens of disabled tenants and people give none.
    pub fn replace(&self, records: &AccessRecords) -> LostAccess {
        let before = self.snapshot.load_full();
        let after = Snapshot::new(records, &before);
        let is_enabled = |id: &TenantId| after.tenants.get(id).is_some_and(|tenant| tenant.enabled);
        let gone_tenants =
            before.tenants.keys().filter(|id| !after.tenants.contains_key(*id)).cloned().collect();
        let was_enabled = before.tenants.values().filter(|tenant| tenant.enabled).map(|tenant| &tenant.id);
        let stopped_tenants = was_enabled.filter(|id| !is_enabled(id)).cloned().collect();
        let actors =
            before.members.keys().filter(|member| !after.members.contains_key(*member)).cloned().collect();
        let changed_members = after.known.changes_since(&before.known);
        self.store(after);
        LostAccess { gone_tenants, stopped_tenants, actors, changed_members }
    }

    /// Replaces what belongs to some people and service accounts: cheap, however many others there are.
    pub fn replace_actors(&self, ids: &BTreeSet<ActorId>, records: &AccessRecords) -> LostAccess {
        let before = self.snapshot.load_full();
        let mut after = Snapshot::clone(&before);
        let (mut actors, mut changed_members) = (Vec::new(), Vec::new());
        for id in ids {
            let tenants = after.remove_actor(*id);
            after.add_actor(*id, records, &before);
            let is_lost = |tenant: &TenantId| !after.members.contains_key(&(tenant.clone(), *id));
            actors.extend(tenants.into_iter().filter(is_lost).map(|tenant| (tenant, *id)));
            changed_members.extend(after.known.replace_actor(*id, records));
        }
        self.store(after);
        LostAccess { gone_tenants: Vec::new(), stopped_tenants: Vec::new(), actors, changed_members }
    }

    /// Makes the next reload load everything.
    pub async fn forget_generation(&self) {
        *self.reload.lock().await = None;
    }

    fn store(&self, snapshot: Snapshot) {
        self.snapshot.store(Arc::new(snapshot));
        self.changed.send_replace(());
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

    /// Returns the login of a person until a time, for a credential that expires and is not stored.
    pub fn login_until(&self, key: &str, end: Timestamp, now: Timestamp) -> Option<Arc<Token>> {
        let login = self.token_by_hash(key, now).filter(|login| login.principal.token.is_none())?;
        let token = Token {
            principal: Arc::clone(&login.principal),
            hash: login.hash.clone(),
            expires_at: Some(end),
            last_uses: login.last_uses.clone(),
        };
        Some(Arc::new(token)).filter(|token| token.is_valid(now))
    }

    /// Returns the tenants in which a person may act, by id.
    pub fn tenants_of_person(&self, id: ActorId) -> Vec<TenantId> {
        let snapshot = self.snapshot.load();
        let own = snapshot.members.keys().filter(|(_, member)| *member == id);
        let mut tenants: Vec<_> = own.map(|(tenant, _)| tenant.clone()).collect();
        tenants.sort();
        tenants
    }

    /// Returns a principal as it is today; `None` if its token was revoked or has expired, or its person was disabled.
    pub fn current(&self, principal: &Principal, now: Timestamp) -> Option<Arc<Principal>> {
        let snapshot = self.snapshot.load();
        let token = match (principal.token, &principal.actor) {
            (None, None) => return Some(Arc::new(principal.clone())),
            (None, Some(actor)) => {
                let login = snapshot.tokens.get(&login_key(actor.id, &principal.tenant))?;
                return Some(Arc::new(with_rights_of(principal, actor, &login.principal)));
            }
            (Some(id), _) => {
                // A rotated token has two values for a while: one that is still valid decides.
                snapshot.values_of(id).find(|token| token.is_valid(now))?
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
        let found = snapshot.values_of(id).next()?;
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

    /// Returns the people and service accounts of a tenant that have a rate limit, by name.
    pub fn limited_members(&self, tenant: &TenantId) -> Vec<Arc<Principal>> {
        let snapshot = self.snapshot.load();
        let is_limited =
            |token: &&Arc<Token>| token.principal.tenant == *tenant && token.principal.member_rate.is_some();
        let found = snapshot.tokens.values().filter(is_limited);
        let key =
            |principal: &Principal| (principal.name.clone(), principal.actor.as_ref().map(|own| own.id));
        let mut found: Vec<_> = found.map(|token| Arc::clone(&token.principal)).collect();
        found.sort_by_cached_key(|principal| key(principal));
        // Each of its tokens has the same.
        found.dedup_by_key(|principal| key(principal));
        found
    }

    /// Returns the ids that stand for somebody in records: the given one, and those of tokens of a person or a service
    /// account of a tenant, which are the owners of what reduced ones have created.
    pub fn owner_ids(&self, tenant: &TenantId, id: Uuid) -> Vec<Arc<str>> {
        let snapshot = self.snapshot.load();
        let principals = snapshot.tokens.values().map(|token| &token.principal);
        let is_own = |principal: &&Arc<Principal>| {
            principal.tenant == *tenant && principal.actor.as_ref().is_some_and(|actor| actor.id.0 == id)
        };
        let tokens = principals.filter(is_own).filter_map(|principal| principal.token);
        let mut ids: Vec<Arc<str>> = tokens.map(|token| token.to_string().into()).collect();
        ids.push(owner_key(ActorId(id)));
        // Calls that were made with it before it had an owner.
        ids.extend((id == LOCAL_OWNER.0).then(|| ENVIRONMENT_TOKEN.into()));
        ids.sort_unstable();
        // A token that is being rotated has two values.
        ids.dedup();
        ids
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

    /// Returns the numbers of open sessions, by what has opened them: the hash of a token, or the login of a person.
    pub fn open_sessions(&self, now: Timestamp) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for session in self.snapshot.load().sessions.values().filter(|session| now < session.expires_at) {
            *counts.entry(session.token_hash.clone()).or_default() += 1;
        }
        counts
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

/// Returns the principal of somebody who is logged in, with the rights that the login has now.
fn with_rights_of(principal: &Principal, actor: &ActingAs, login: &Principal) -> Principal {
    let of_login = login.actor.as_deref().unwrap_or(actor).clone();
    let acting = ActingAs { token_name: actor.token_name.clone(), ..of_login };
    // A client of the local owner can be less than elevated.
    let elevated = login.elevated && principal.elevated;
    Principal { actor: Some(Arc::new(acting)), elevated, agent: principal.agent.clone(), ..login.clone() }
}
