//! Loads the changes of other processes and nodes.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_core::approval::Approval;
use haft_core::catalog::{Change, StoreError};
use haft_core::id::ApprovalId;
use sqlx::any::AnyRow;
use sqlx::{Any, AssertSqlSafe, Transaction};

use crate::access::Access;
use crate::catalog::Catalog;
use crate::database::Database;
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::notification::ChangeSet;
use crate::policies::Policies;
use crate::rows;
use crate::runs::Runs;
use crate::vault::Vault;
use crate::webhooks::Webhooks;

/// The largest number of rows that one query loads by id.
const IDS_PER_QUERY: usize = 500;

const LOAD: &str = "load the changes of another node";

/// Loads and announces the changes of other processes and nodes.
#[derive(Clone)]
pub(crate) struct RemoteChanges {
    pub(crate) db: Arc<Database>,
    pub(crate) access: Access,
    pub(crate) calls: Calls,
    pub(crate) catalog: Catalog,
    pub(crate) policies: Policies,
    pub(crate) runs: Runs,
    pub(crate) vault: Vault,
    pub(crate) webhooks: Webhooks,
}

impl RemoteChanges {
    /// Loads everything that is kept in memory, and announces the whole catalog.
    pub(crate) async fn reload(&self) -> Result<(), StoreError> {
        // Held until the end: a credential that is stored meanwhile is not replaced by the earlier one.
        let _lock = self.catalog.state.reload().await?;
        self.access.signal_change();
        self.policies.signal_change();
        self.webhooks.load().await?;
        self.vault.load().await
    }

    /// Loads everything if another process has changed the index.
    pub(super) async fn check_generation(&self) {
        let known = self.db.generation.lock().await.0;
        match self.db.stored_generation().await {
            Ok(now) if now != known => {
                if let Err(error) = self.reload().await {
                    tracing::error!(error = &error as &dyn std::error::Error, "cannot load the catalog");
                }
            }
            Ok(_) => {}
            Err(error) => tracing::error!(%error, "cannot read the generation of the catalog"),
        }
    }

    /// Loads the objects in a set of changes.
    pub(super) async fn load(&self, changes: &ChangeSet) -> Result<(), StoreError> {
        if changes.tokens {
            self.access.signal_change();
        }
        if changes.queue {
            self.calls.state.queue_changed.notify_one();
            self.calls.state.approvals.signal_change();
        }
        if !changes.approvals.is_empty() {
            // A denied call has ended, but its id is unknown here.
            self.calls.state.ended.add_unknown();
        }
        if changes.runs {
            self.runs.signal_change();
        }
        if changes.policies {
            self.policies.signal_change();
        }
        if changes.webhooks {
            self.webhooks.load().await?;
        }
        if self.db.sink.has_followers() {
            if !changes.approvals.is_empty() {
                self.report_approvals(&changes.approvals).await?;
            }
            for change in &changes.objects {
                self.db.sink.object_changed(change);
            }
        }
        if changes.bundles.is_empty() && changes.tools.is_empty() && !changes.credentials {
            return Ok(());
        }
        // Serialised with the changes of this node, so that the newest state is announced last.
        let _lock = self.db.generation.lock().await;
        if changes.credentials {
            self.vault.load().await?;
        }
        let loaded = self.changed_rows(changes).await.map_err(failed_to(LOAD))?;
        let catalog = &self.catalog.state;
        catalog.announce(&catalog.mark_missing_built_ins(loaded));
        Ok(())
    }

    /// Reports the approvals that another node has changed, and their calls.
    async fn report_approvals(&self, ids: &BTreeSet<ApprovalId>) -> Result<(), StoreError> {
        let mut tx = self.db.engine.begin_snapshot().await.map_err(failed_to(LOAD))?;
        let found = self.rows_by_id(&mut tx, "SELECT record FROM approvals", "id", ids).await;
        let found = found.map_err(failed_to(LOAD))?;
        drop(tx);
        for row in &found {
            let approval: Approval = rows::json_column(row, "record").map_err(failed_to(LOAD))?;
            self.db.sink.approval_changed(&approval);
            if let Some(call) = self.calls.find(&approval.requested_by.tenant, approval.call_id).await? {
                self.db.sink.call_changed(&call);
            }
        }
        Ok(())
    }

    /// Returns the current state of everything that changed; tools of a new bundle come after it.
    async fn changed_rows(&self, changes: &ChangeSet) -> Result<Vec<Change>, sqlx::Error> {
        let mut loaded = Vec::new();
        let (mut bundles, mut tools) = (changes.bundles.clone(), changes.tools.clone());
        // Read in one snapshot: otherwise a tool could be newer than its bundle.
        let mut tx = self.db.engine.begin_snapshot().await?;
        for row in self.rows_by_id(&mut tx, rows::BUNDLE, "id", &bundles).await? {
            let bundle = rows::bundle(&row)?;
            bundles.remove(&bundle.id);
            loaded.push(Change::Bundle(bundle));
        }
        for row in self.rows_by_id(&mut tx, rows::TOOL, "t.id", &tools).await? {
            let tool = rows::tool(&row)?;
            tools.remove(&tool.id);
            loaded.push(Change::Tool(Box::new(tool)));
        }
        loaded.extend(tools.into_iter().map(Change::ToolGone));
        loaded.extend(bundles.into_iter().map(Change::BundleGone));
        Ok(loaded)
    }

    async fn rows_by_id<T: ToString>(
        &self,
        tx: &mut Transaction<'static, Any>,
        select: &str,
        column: &str,
        ids: impl IntoIterator<Item = T>,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        let ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        let mut found = Vec::with_capacity(ids.len());
        for chunk in ids.chunks(IDS_PER_QUERY) {
            let sql = format!("{select} WHERE {column} IN {}", self.db.engine.placeholders(1, chunk.len()));
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for id in chunk {
                query = query.bind(id);
            }
            found.extend(query.fetch_all(&mut **tx).await?);
        }
        Ok(found)
    }
}
