//! Stops the running calls of a tenant that was disabled or deleted.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use haft_core::name::TenantId;
use tokio_util::sync::CancellationToken;

/// A token for each tenant with calls; cancelling it cancels its calls. Looking one up takes no lock.
pub(super) struct TenantStops {
    stopping: CancellationToken,
    tokens: ArcSwap<HashMap<TenantId, CancellationToken>>,
    writer: Mutex<()>,
}

impl TenantStops {
    /// Creates the tokens as children of the one that stops the server.
    pub(super) fn new(stopping: CancellationToken) -> Self {
        Self { stopping, tokens: ArcSwap::default(), writer: Mutex::default() }
    }

    /// Returns the token of a tenant.
    pub(super) fn token(&self, tenant: &TenantId) -> CancellationToken {
        if let Some(token) = self.tokens.load().get(tenant) {
            return token.clone();
        }
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(token) = self.tokens.load().get(tenant) {
            return token.clone();
        }
        let token = self.stopping.child_token();
        let mut tokens = HashMap::clone(&self.tokens.load());
        tokens.insert(tenant.clone(), token.clone());
        self.tokens.store(Arc::new(tokens));
        token
    }

    /// Cancels the running calls of a tenant. Later ones get a new token.
    pub(super) fn stop(&self, tenant: &TenantId) {
        let _writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = HashMap::clone(&self.tokens.load());
        let token = tokens.remove(tenant);
        self.tokens.store(Arc::new(tokens));
        if let Some(token) = token {
            token.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_running_calls_of_the_tenant_are_stopped() {
        let stopping = CancellationToken::new();
        let stops = TenantStops::new(stopping.clone());
        let [acme, other] = ["acme", "other"].map(|id| TenantId::new(id).unwrap());
        let (running, unrelated) = (stops.token(&acme), stops.token(&other));
        stops.stop(&acme);
        assert!(running.is_cancelled() && !unrelated.is_cancelled() && !stops.token(&acme).is_cancelled());
        stopping.cancel();
        assert!(unrelated.is_cancelled() && stops.token(&acme).is_cancelled());
    }
}
