//! Stops the running calls of a tenant that was disabled or deleted, and those of a person or a service account.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::principal::Principal;
use tokio_util::sync::CancellationToken;

/// A token for each tenant with calls, and below it one for each person or service account; cancelling it cancels their
/// calls. Looking one up takes no lock.
pub(super) struct CallStops {
    stopping: CancellationToken,
    tokens: ArcSwap<HashMap<Caller, CancellationToken>>,
    writer: Mutex<()>,
}

/// Whose calls are stopped: everybody's of a tenant, or an actor's.
type Caller = (TenantId, Option<ActorId>);

impl CallStops {
    /// Creates the tokens as children of the one that stops the server.
    pub(super) fn new(stopping: CancellationToken) -> Self {
        Self { stopping, tokens: ArcSwap::default(), writer: Mutex::default() }
    }

    /// Returns the token of the calls of a principal.
    pub(super) fn token(&self, principal: &Principal) -> CancellationToken {
        let caller = (principal.tenant.clone(), principal.actor.as_ref().map(|actor| actor.id));
        if let Some(token) = self.tokens.load().get(&caller) {
            return token.clone();
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = HashMap::clone(&self.tokens.load());
        let of_tenant = (caller.0.clone(), None);
        let of_tenant = tokens.entry(of_tenant).or_insert_with(|| self.stopping.child_token()).clone();
        let token = tokens.entry(caller).or_insert_with(|| of_tenant.child_token()).clone();
        self.tokens.store(Arc::new(tokens));
        token
    }

    /// Cancels the running calls of a tenant. Later ones get a new token.
    pub(super) fn stop_tenant(&self, tenant: &TenantId) {
        self.stop(|(of, _)| of == tenant);
    }

    /// Cancels the running calls of a person or a service account in a tenant. Later ones get a new token.
    pub(super) fn stop_actor(&self, tenant: &TenantId, actor: ActorId) {
        self.stop(|(of, id)| of == tenant && *id == Some(actor));
    }

    fn stop(&self, is_stopped: impl Fn(&Caller) -> bool) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = HashMap::clone(&self.tokens.load());
        let stopped: Vec<_> = tokens.extract_if(|caller, _| is_stopped(caller)).collect();
        self.tokens.store(Arc::new(tokens));
        for (_, token) in stopped {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::actor::{ActingAs, ActorKind};
    use haft_core::token::Role;

    fn caller(tenant: &str, actor: Option<u128>) -> Principal {
        let acting = |id| ActingAs {
            id: ActorId(uuid::Uuid::from_u128(id)),
            kind: ActorKind::Person,
            email: None,
            groups: Vec::new(),
            is_reduced: false,
            token_name: None,
        };
        let principal = Principal::new(TenantId::new(tenant).unwrap(), "x", Role::Caller);
        Principal { actor: actor.map(|id| Arc::new(acting(id))), ..principal }
    }

    #[test]
    fn only_running_calls_of_the_tenant_are_stopped() {
        let stopping = CancellationToken::new();
        let stops = CallStops::new(stopping.clone());
        let [acme, of_person, other] = [caller("acme", None), caller("acme", Some(1)), caller("other", None)];
        let (running, persons, unrelated) =
            (stops.token(&acme), stops.token(&of_person), stops.token(&other));
        stops.stop_tenant(&acme.tenant);
        assert!(running.is_cancelled() && persons.is_cancelled() && !unrelated.is_cancelled());
        assert!(!stops.token(&acme).is_cancelled() && !stops.token(&of_person).is_cancelled());
        stopping.cancel();
        assert!(unrelated.is_cancelled() && stops.token(&acme).is_cancelled());
    }

    #[test]
    fn only_running_calls_of_the_person_are_stopped() {
        let stops = CallStops::new(CancellationToken::new());
        let [ann, bob, nobody] = [caller("acme", Some(1)), caller("acme", Some(2)), caller("acme", None)];
        let elsewhere = caller("other", Some(1));
        let others = [&bob, &nobody, &elsewhere].map(|caller| stops.token(caller));
        let running = stops.token(&ann);
        stops.stop_actor(&ann.tenant, ActorId(uuid::Uuid::from_u128(1)));
        assert!(running.is_cancelled() && !stops.token(&ann).is_cancelled());
        assert!(others.iter().all(|token| !token.is_cancelled()));
    }
}
