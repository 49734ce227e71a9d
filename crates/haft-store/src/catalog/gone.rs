//! Tools whose file went away. They are kept for a while, out of sight, for the file to come back.

use haft_core::Timestamp;
use haft_core::id::{BundleId, ToolId};
use haft_core::name::{ToolName, Version};
use sqlx::Row as _;

use crate::session::Session;

type Result<T> = std::result::Result<T, sqlx::Error>;

impl Session<'_> {
    /// Takes a tool out of sight.
    pub(crate) async fn hide_tool(&mut self, id: ToolId, now: Timestamp) -> Result<()> {
        sqlx::query("UPDATE tools SET gone_at = $1, path = NULL, stamp = NULL, fault = NULL WHERE id = $2")
            .bind(now.as_microsecond())
            .bind(id.to_string())
            .execute(&mut *self.tx)
            .await?;
        self.touch_tool(id);
        Ok(())
    }

    /// Brings the tool of a `<bundle, name, version>` back; tells whether there was one.
    pub(crate) async fn bring_back(
        &mut self,
        bundle: BundleId,
        name: &ToolName,
        version: &Version,
    ) -> Result<bool> {
        let sql = "UPDATE tools SET gone_at = NULL \
                   WHERE bundle_id = $1 AND name = $2 AND version = $3 AND gone_at IS NOT NULL";
        let done = sqlx::query(sql)
            .bind(bundle.to_string())
            .bind(name.as_str())
            .bind(version.as_str())
            .execute(&mut *self.tx)
            .await?;
        Ok(done.rows_affected() > 0)
    }

    /// Frees the `<bundle, name, version>` of a tool that is gone, for another one.
    pub(crate) async fn forget_gone(
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

    /// Tells whether a bundle has tools that may come back.
    pub(crate) async fn has_gone(&mut self, bundle: BundleId) -> Result<bool> {
        let sql = "SELECT COUNT(*) FROM tools WHERE bundle_id = $1 AND gone_at IS NOT NULL";
        let row = sqlx::query(sql).bind(bundle.to_string()).fetch_one(&mut *self.tx).await?;
        Ok(row.try_get::<i64, _>(0)? > 0)
    }
}
