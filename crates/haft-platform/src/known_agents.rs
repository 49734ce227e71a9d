//! The agents that tools refer to, as this node knows them.

use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::id::AgentId;
use haft_core::name::TenantId;
use haft_store::Store;

use crate::known_names::KnownNames;

/// How often a node looks for agents that other nodes, or files, changed.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The names of agents.
pub struct KnownAgents {
    store: Arc<Store>,
    /// By slug and id; the number is 1 if the agent is published.
    names: KnownNames,
}

/// Whether production mode runs an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownAgent {
    /// It has no published revision.
    Draft,
    /// It has one.
    Published,
}

impl KnownAgents {
    /// Reads the names.
    pub async fn open(store: Arc<Store>) -> Result<Self, StoreError> {
        let agents = Self { store, names: KnownNames::default() };
        agents.refresh_names().await?;
        Ok(agents)
    }

    /// Reads the names again if they have changed.
    pub async fn refresh_names(&self) -> Result<(), StoreError> {
        if let Some(found) = self.store.agents().names(self.names.counter()).await? {
            let names = found.names.into_iter().flat_map(|agent| {
                let published = u32::from(agent.is_published);
                [(agent.tenant.clone(), agent.slug, published), (agent.tenant, agent.id, published)]
            });
            self.names.replace(found.counter, names);
        }
        Ok(())
    }

    /// Looks for changes by other nodes and by files, until dropped.
    pub async fn follow(&self) {
        loop {
            if let Err(error) = self.refresh_names().await {
                tracing::warn!(error = &error as &dyn std::error::Error, "cannot read the names of agents");
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Returns an agent of a tenant, by slug or id.
    pub fn find(&self, tenant: &TenantId, reference: &str) -> Option<KnownAgent> {
        let found = match reference.parse::<AgentId>() {
            Ok(id) => self.names.find(tenant, &id.to_string()),
            Err(_) => self.names.find(tenant, reference),
        };
        found.map(|published| if published > 0 { KnownAgent::Published } else { KnownAgent::Draft })
    }
}
