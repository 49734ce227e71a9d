//! Tools whose file is missing. They are hidden, and restored if the file comes back in time.

use haft_core::Timestamp;
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{ToolName, Version};
use sqlx::Row as _;

use super::session::Session;

type Result<T> = std::result::Result<T, sqlx::Error>;

impl Session<'_> {
    /// Hides a tool whose file is missing.
    pub(crate) async fn hide_missing_tool(&mut self, id: ToolId, now: Timestamp) -> Result<()> {
        sqlx::query("UPDATE tools SET gone_at = $1, path = NULL, stamp = NULL, fault = NULL WHERE id = $2")
            .bind(now.as_microsecond())
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.mark_tool_changed(id);
        Ok(())
    }

    /// Restores the tool with this name and version whose file was missing, and returns whether there was one. A deleted
    /// tool keeps its path while it is hidden: a file does not restore it, but makes another tool.
    pub(crate) async fn restore_missing(
        &mut self,
        bundle: BundleId,
        name: &ToolName,
        version: &Version,
    ) -> Result<bool> {
        let sql = "UPDATE tools SET gone_at = NULL \
                   WHERE bundle_id = $1 AND name = $2 AND version = $3 AND gone_at IS NOT NULL AND path IS NULL \
                   AND source <> 'toolset'";
        let done = sqlx::query(sql)
            .bind(bundle.to_string())
            .bind(name.as_str())
            .bind(version.as_str())
            .execute(&mut *self.tx)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Deletes the hidden tool with this name and version, so that another tool can use them.
    pub(crate) async fn delete_missing(
        &mut self,
        bundle: BundleId,
        name: &ToolName,
        version: &Version,
    ) -> Result<()> {
        let sql =
            "DELETE FROM tools WHERE bundle_id = $1 AND name = $2 AND version = $3 AND gone_at IS NOT NULL";
        sqlx::query(sql)
            .bind(bundle.to_string())
            .bind(name.as_str())
            .bind(version.as_str())
            .execute(&mut *self.tx)
            .await?;
        Ok(())
    }

    /// Tells whether a bundle has hidden tools.
    pub(crate) async fn has_missing(&mut self, bundle: BundleId) -> Result<bool> {
        let sql = "SELECT COUNT(*) FROM tools WHERE bundle_id = $1 AND gone_at IS NOT NULL";
        let row = sqlx::query(sql).bind(bundle.to_string()).fetch_one(&mut *self.tx).await?;
        Ok(row.try_get::<i64, _>(0)? > 0)
    }
}
