//! The policy rules of the installation: loading, checking and reloading them.

use std::sync::Arc;

use haft_core::catalog::StoreError;
use haft_core::policy::{PolicyRules, PolicyScope};
use haft_runtime::policy::{Policy, PolicyError, PolicyHandle};
use haft_store::{Store, StoredPolicies};
use tokio::sync::{Mutex, watch};

/// Rules that cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadPolicyError {
    /// The store cannot read them.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// They do not compile or fail their examples.
    #[error(transparent)]
    Invalid(#[from] PolicyError),
    /// The task that compiles them failed.
    #[error("failed to compile the rules")]
    Task(#[from] tokio::task::JoinError),
}

/// The compiled rules, and what changes them.
pub struct PolicyState {
    handle: Arc<PolicyHandle>,
    /// The rules that were compiled. Locked while rules are loaded, so that an older state never replaces a newer one.
    loaded: Mutex<StoredPolicies>,
    /// The changes of the stored rules since they were first loaded.
    changes: watch::Receiver<u64>,
}

impl PolicyState {
    /// Loads the stored rules.
    pub async fn load(store: &Store) -> Result<Self, LoadPolicyError> {
        let changes = store.policies().changes();
        let policies = store.policies().all().await?;
        let policy = compile(policies.clone()).await?;
        Ok(Self { handle: Arc::new(PolicyHandle::new(policy)), loaded: Mutex::new(policies), changes })
    }

    /// Returns the handle of the current rules.
    pub fn handle(&self) -> &Arc<PolicyHandle> {
        &self.handle
    }

    /// Loads the rules whenever other processes change them, until dropped.
    pub async fn follow(&self, store: &Store) {
        let mut changes = self.changes.clone();
        while changes.changed().await.is_ok() {
            if let Err(error) = self.reload(store).await {
                let error = &error as &dyn std::error::Error;
                tracing::error!(error, "failed to reload the policy rules; the previous ones stay in force");
            }
        }
    }

    /// Loads the stored rules again; if they are invalid, the previous ones stay in force.
    pub async fn reload(&self, store: &Store) -> Result<(), LoadPolicyError> {
        let mut loaded = self.loaded.lock().await;
        let policies = store.policies().all().await?;
        // Other changes of the catalog signal a possible change of the rules too.
        if *loaded != policies {
            self.handle.replace(compile(policies.clone()).await?);
            *loaded = policies;
        }
        Ok(())
    }
}

/// Compiles the rules of one scope and checks their examples, without using them.
pub async fn check(scope: &PolicyScope, rules: &PolicyRules) -> Result<(), LoadPolicyError> {
    let policies = match scope {
        PolicyScope::Platform => StoredPolicies { platform: rules.clone(), tenants: Vec::new() },
        PolicyScope::Tenant(tenant) => {
            StoredPolicies { tenants: vec![(tenant.clone(), rules.clone())], ..StoredPolicies::default() }
        }
    };
    compile(policies).await.map(drop)
}

async fn compile(policies: StoredPolicies) -> Result<Policy, LoadPolicyError> {
    let work = move || Policy::compile(&policies.platform, &policies.tenants);
    Ok(tokio::task::spawn_blocking(work).await??)
}
