//! The catalog as the rest of haft sees it.

use haft_core::bundle::Bundle;
use haft_core::catalog::{
    Backup, Catalog, NewTool, PutBundle, PutResult, StoreError, ToolChange, Transition,
};
use haft_core::id::{BundleId, ToolId};
use haft_core::spec::ToolSpec;
use haft_core::tool::{Revision, Tool};
use haft_core::{BoxFuture, Timestamp};

use crate::engine::fault;
use crate::rows;
use crate::store::{Inner, Store};

impl Catalog for Store {
    fn put_bundle(&self, bundle: PutBundle) -> BoxFuture<'_, Result<(Bundle, PutResult), StoreError>> {
        Box::pin(self.run(|inner| async move { inner.put_bundle(bundle).await }))
    }

    fn enable_bundle(&self, id: BundleId, enabled: bool) -> BoxFuture<'_, Result<Bundle, StoreError>> {
        Box::pin(self.run(move |inner| async move { inner.enable_bundle(id, enabled).await }))
    }

    fn delete_bundle(&self, id: BundleId) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.run(move |inner| async move { inner.delete_bundle(id).await }))
    }

    fn create_tool(&self, tool: NewTool) -> BoxFuture<'_, Result<Tool, StoreError>> {
        Box::pin(self.run(|inner| async move { inner.create_tool(tool).await }))
    }

    fn update_tool(&self, id: ToolId, change: ToolChange) -> BoxFuture<'_, Result<Tool, StoreError>> {
        Box::pin(self.run(move |inner| async move { inner.update_tool(id, change).await }))
    }

    fn enable_tool(&self, id: ToolId, enabled: bool) -> BoxFuture<'_, Result<Tool, StoreError>> {
        Box::pin(self.run(move |inner| async move { inner.enable_tool(id, enabled).await }))
    }

    fn transition(&self, id: ToolId, step: Transition) -> BoxFuture<'_, Result<Tool, StoreError>> {
        Box::pin(self.run(move |inner| async move { inner.transition(id, step).await }))
    }

    fn delete_tool(&self, id: ToolId, backup: Backup) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        Box::pin(self.run(move |inner| async move { inner.delete_tool(id, backup).await }))
    }

    fn revisions(&self, id: ToolId) -> BoxFuture<'_, Result<Vec<Revision>, StoreError>> {
        Box::pin(self.inner.revisions(id))
    }

    fn set_built_ins(&self, specs: Vec<ToolSpec>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.run(|inner| async move { inner.set_built_ins(specs).await }))
    }

    fn add_usage(&self, calls: Vec<(ToolId, u64, Timestamp)>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.run(|inner| async move { inner.add_usage(calls).await.map_err(fault("count calls")) }))
    }
}

impl Inner {
    async fn revisions(&self, id: ToolId) -> Result<Vec<Revision>, StoreError> {
        let doing = "read the revisions of the tool";
        let sql =
            "SELECT number, hash, spec, created_at FROM revisions WHERE tool_id = $1 ORDER BY number DESC";
        let found =
            sqlx::query(sql).bind(id.to_string()).fetch_all(&self.engine.pool).await.map_err(fault(doing))?;
        if found.is_empty() {
            return Err(StoreError::not_found("tool", id));
        }
        found.iter().map(rows::revision).collect::<Result<_, _>>().map_err(fault(doing))
    }

    /// Counters are not part of the catalog: nobody is told, and the tools' rows are locked only briefly.
    async fn add_usage(&self, mut calls: Vec<(ToolId, u64, Timestamp)>) -> Result<(), sqlx::Error> {
        if calls.is_empty() {
            return Ok(());
        }
        // In one order everywhere, so that two nodes never wait for each other in a circle.
        calls.sort_by_key(|(id, ..)| *id);
        let mut tx = self.engine.begin().await?;
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
