//! Removes expired data and data beyond its retention. Each statement removes a bounded number of rows, so that no writer
//! waits long.

use std::sync::Arc;

use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::catalog::StoreError;
use haft_core::retrieval::PipelineDefinition;

use crate::access::Access;
use crate::accounts::StoredAccounts;
use crate::approvals::StoredApprovals;
use crate::audit_log::AuditLog;
use crate::catalog::Catalog;
use crate::chats::Chats;
use crate::database::Database;
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::limits::Limits;
use crate::runs::Runs;
use crate::tenants::Tenants;
use crate::vault::Vault;
use crate::webhooks::Webhooks;
use crate::workspaces::Workspaces;

/// The parts of the store with data to remove.
#[derive(Clone)]
pub(crate) struct Reaper {
    pub(crate) db: Arc<Database>,
    pub(crate) access: Access,
    pub(crate) accounts: StoredAccounts,
    pub(crate) approvals: StoredApprovals,
    pub(crate) audit: AuditLog,
    pub(crate) calls: Calls,
    pub(crate) catalog: Catalog,
    pub(crate) chats: Chats,
    pub(crate) limits: Limits,
    pub(crate) runs: Runs,
    pub(crate) tenants: Tenants,
    pub(crate) vault: Vault,
    pub(crate) webhooks: Webhooks,
    pub(crate) workspaces: Workspaces,
}

/// The amount of removed data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// The number of bundles.
    pub bundles: usize,
    /// The number of calls.
    pub calls: u64,
}

impl Reaper {
    pub(crate) async fn reap(&self) -> Result<ReapReport, StoreError> {
        self.vault.reap_refresh_tokens().await.map_err(failed_to("remove old refresh tokens"))?;
        self.audit.reap().await.map_err(failed_to("remove old audit records"))?;
        self.access.reap_logins().await.map_err(failed_to("remove expired sessions"))?;
        self.access.reap_applications().await.map_err(failed_to("remove old applications"))?;
        self.accounts.reap().await.map_err(failed_to("remove expired logins"))?;
        self.webhooks.reap().await.map_err(failed_to("remove old deliveries to webhooks"))?;
        self.tenants.reap_deleted().await?;
        self.catalog.state.reap_history().await?;
        self.calls.reap_idempotency_keys().await.map_err(failed_to("remove old idempotency keys"))?;
        self.limits.reap().await.map_err(failed_to("remove old counters of limits"))?;
        self.catalog.state.reap_missing().await.map_err(failed_to("remove tools without a file"))?;
        self.db.reap_hidden::<AgentDefinition>().await?;
        self.db.reap_hidden::<PipelineDefinition>().await?;
        self.db.reap_hidden::<ArtifactDefinition>().await?;
        self.runs.reap().await.map_err(failed_to("remove old runs"))?;
        let (bundles, calls) = (self.catalog.state.reap_bundles().await?, self.calls.reap_calls().await?);
        // After the calls, whose events go with them.
        self.reap_growth().await?;
        Ok(ReapReport { bundles, calls })
    }

    /// Removes data beyond its retention.
    async fn reap_growth(&self) -> Result<(), StoreError> {
        self.calls.reap_events().await.map_err(failed_to("remove old events"))?;
        self.approvals.reap().await?;
        self.workspaces.reap_old_states().await.map_err(failed_to("remove old states of workspaces"))?;
        self.workspaces.reap_surplus_states().await.map_err(failed_to("remove old states of workspaces"))?;
        self.catalog.state.reap_tool_revisions().await.map_err(failed_to("remove old revisions of tools"))?;
        self.db.reap_revisions::<AgentDefinition>().await?;
        self.db.reap_revisions::<PipelineDefinition>().await?;
        self.db.reap_revisions::<ArtifactDefinition>().await?;
        self.chats.reap().await
    }
}
