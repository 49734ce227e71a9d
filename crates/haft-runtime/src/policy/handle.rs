//! The current policy, shared by the pipeline and everything that changes it.

use std::sync::Arc;

use arc_swap::{ArcSwap, Guard};

use super::decide::Policy;

/// The current policy. Reading it takes no lock.
#[derive(Default)]
pub struct PolicyHandle(ArcSwap<Policy>);

impl PolicyHandle {
    /// Creates a handle of a policy.
    pub fn new(policy: Policy) -> Self {
        Self(ArcSwap::from_pointee(policy))
    }

    /// Returns the current policy.
    pub fn load(&self) -> Guard<Arc<Policy>> {
        self.0.load()
    }

    /// Replaces the policy; calls that are being decided keep the old one.
    pub fn replace(&self, policy: Policy) {
        self.0.store(Arc::new(policy));
    }
}
