//! The public operations of the catalog. Every write is durable and announced when it returns.

use haft_core::Timestamp;
use haft_core::bundle::Bundle;
use haft_core::catalog::{
    Backup, ImportedTool, NewTool, PutBundle, PutResult, StoreError, ToolChange, Transition,
};
use haft_core::id::{BundleId, ToolId};
use haft_core::name::TenantId;
use haft_core::spec::ToolSpec;
use haft_core::tool::{Revision, Tool};

use super::state::{Catalog, CatalogState};
use crate::engine::failed_to;
use crate::rows;

impl Catalog {
    /// Creates a bundle, replaces it, or revives a deleted one.
    pub async fn put_bundle(&self, bundle: PutBundle) -> Result<(Bundle, PutResult), StoreError> {
        self.run(|catalog| async move { catalog.put_bundle(bundle).await }).await
    }

    /// Enables or disables a bundle.
    pub async fn enable_bundle(&self, id: BundleId, enabled: bool) -> Result<Bundle, StoreError> {
        self.run(move |catalog| async move { catalog.enable_bundle(id, enabled).await }).await
    }

    /// Marks an empty bundle as deleted.
    pub async fn delete_bundle(&self, id: BundleId) -> Result<(), StoreError> {
        self.run(move |catalog| async move { catalog.delete_bundle(id).await }).await
    }

    /// Stores a new tool; an existing `<bundle, name, version>` is a conflict and stays unchanged.
    pub async fn create_tool(&self, tool: NewTool) -> Result<Tool, StoreError> {
        self.run(|catalog| async move { catalog.create_tool(tool).await }).await
    }

    /// Updates a tool in one step.
    ///
    /// Changed content appends a revision. A changed text with the same content only replaces the file.
    pub async fn update_tool(&self, id: ToolId, change: ToolChange) -> Result<Tool, StoreError> {
        self.run(move |catalog| async move { catalog.update_tool(id, change).await }).await
    }

    /// Creates several tools: all of them or none. Returns them in order.
    pub async fn create_tools(&self, tools: Vec<NewTool>) -> Result<Vec<Tool>, StoreError> {
        self.run(|catalog| async move { catalog.create_tools(tools).await }).await
    }

    /// Enables or disables a tool.
    pub async fn enable_tool(&self, id: ToolId, enabled: bool) -> Result<Tool, StoreError> {
        self.run(move |catalog| async move { catalog.enable_tool(id, enabled).await }).await
    }

    /// Publishes, deprecates, disables or relabels a tool.
    pub async fn transition(&self, id: ToolId, step: Transition) -> Result<Tool, StoreError> {
        self.run(move |catalog| async move { catalog.transition(id, step).await }).await
    }

    /// Publishes several tools of a bundle: all of them or none.
    pub async fn publish_tools(&self, ids: Vec<ToolId>) -> Result<Vec<Tool>, StoreError> {
        self.run(|catalog| async move { catalog.publish_tools(ids).await }).await
    }

    /// Stores tools from another registry: all of them or none. Returns them in order.
    pub async fn import_tools(
        &self,
        tenant: TenantId,
        tools: Vec<ImportedTool>,
    ) -> Result<Vec<Tool>, StoreError> {
        self.run(|catalog| async move { catalog.import_tools(tenant, tools).await }).await
    }

    /// Deletes a tool and returns the path of its backup, relative to the home folder. Without a backup it cannot be
    /// restored.
    pub async fn delete_tool(&self, id: ToolId, backup: Backup) -> Result<Option<String>, StoreError> {
        self.run(move |catalog| async move { catalog.delete_tool(id, backup).await }).await
    }

    /// Returns all revisions of a tool, newest first.
    pub async fn revisions(&self, id: ToolId) -> Result<Vec<Revision>, StoreError> {
        self.state.revisions(id).await
    }

    /// Stores the built-in tools of this program; those of other programs stay unchanged.
    pub async fn set_built_ins(&self, specs: Vec<ToolSpec>) -> Result<(), StoreError> {
        self.run(|catalog| async move { catalog.set_built_ins(specs).await }).await
    }

    /// Adds calls to the usage counters.
    pub async fn add_usage(&self, calls: Vec<(ToolId, u64, Timestamp)>) -> Result<(), StoreError> {
        self.run(|catalog| async move { catalog.add_usage(calls).await.map_err(failed_to("count calls")) })
            .await
    }
}

impl CatalogState {
    async fn revisions(&self, id: ToolId) -> Result<Vec<Revision>, StoreError> {
        let action = "read the revisions of the tool";
        let sql = "SELECT r.number AS number, r.hash AS hash, r.spec AS spec, r.created_at AS created_at, \
             r.created_by AS created_by, r.published_at AS published_at, r.published_by AS published_by \
             FROM tools t JOIN revisions r ON r.tool_id = t.id \
             WHERE t.id = $1 AND t.gone_at IS NULL ORDER BY r.number DESC";
        let found = sqlx::query(sql)
            .bind(id.to_string())
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(action))?;
        if found.is_empty() {
            return Err(StoreError::not_found("tool", id));
        }
        found.iter().map(rows::revision).collect::<Result<_, _>>().map_err(failed_to(action))
    }

    /// Usage counters are not announced, and the rows are locked only briefly.
    async fn add_usage(&self, mut calls: Vec<(ToolId, u64, Timestamp)>) -> Result<(), sqlx::Error> {
        if calls.is_empty() {
            return Ok(());
        }
        // In one order everywhere, so that two nodes never wait for each other in a circle.
        calls.sort_by_key(|(id, ..)| *id);
        let mut tx = self.db.engine.begin().await?;
        for (id, count, last) in calls {
            sqlx::query(
                "UPDATE tools SET call_count = call_count + $1, last_called_at = CASE \
                 WHEN last_called_at IS NULL OR last_called_at < $2 THEN $3 ELSE last_called_at END WHERE id = $4",
            )
            .bind(i64::try_from(count).unwrap_or(i64::MAX))
            .bind(last.as_microsecond())
            .bind(last.as_microsecond())
            .bind(id.to_string())
            .execute(&mut *tx)
            .await?;
        }
        tx.commit().await
    }
}
