//! Deleted tools: hidden with their revisions, restored on request, and removed after 48 hours.
//!
//! A deleted tool keeps the path of its file, by which its backup is found. One whose file is missing has no path (see
//! [`missing`](super::missing)); restoring it writes the file again.

use haft_core::Timestamp;
use haft_core::bundle::REAP_AFTER_HOURS;
use haft_core::catalog::{Backup, FileForm, SourceText, StoreError};
use haft_core::id::ToolId;
use haft_core::name::TenantId;
use haft_core::tool::{Source, Tool};
use jiff::SignedDuration;
use sqlx::AssertSqlSafe;
use sqlx::any::AnyRow;

use super::queries::ToolFile;
use super::session::Session;
use super::state::{Catalog, CatalogState};
use super::tool_files::{Content, form_of};
use super::tools::find_announced;
use crate::engine::failed_to;
use crate::files::{history, layout};
use crate::{limits, rows};

const FIND: &str = "find the deleted tool";
const DELETE: &str = "delete the tool";
const RESTORE: &str = "restore the tool";
/// How many deleted tools are kept for a tenant.
const MAX_DELETED: i64 = 1000;
/// The maximum number that one deletion removes above that limit; missing files count, too.
const MAX_REMOVED: i64 = 100;

/// A deleted tool, or one whose file is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct DeletedTool {
    /// The tool as it was.
    pub tool: Tool,
    /// When it was deleted.
    pub deleted_at: Timestamp,
}

impl Catalog {
    /// Returns the tools of a tenant that were deleted and can be restored, the last one first.
    pub async fn deleted_tools(&self, tenant: &TenantId) -> Result<Vec<DeletedTool>, StoreError> {
        let sql = format!(
            "{} WHERE t.tenant = $1 AND t.gone_at > $2 ORDER BY t.gone_at DESC, t.id DESC LIMIT $3",
            rows::HIDDEN_TOOL
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str());
        let query = query.bind(self.state.latest_tool_removal().as_microsecond()).bind(MAX_DELETED);
        let found = query.fetch_all(&self.state.db.engine.pool).await.map_err(failed_to(FIND))?;
        found.iter().map(deleted).collect::<Result<_, _>>().map_err(failed_to(FIND))
    }

    /// Restores a deleted tool as it was: with its revisions, its status and its file.
    pub async fn undelete_tool(&self, tenant: &TenantId, id: ToolId) -> Result<Tool, StoreError> {
        let tenant = tenant.clone();
        self.run(move |catalog| async move { catalog.undelete_tool(&tenant, id).await }).await
    }
}

impl CatalogState {
    /// Returns the time before which hidden tools are removed.
    fn latest_tool_removal(&self) -> Timestamp {
        self.db.now() - SignedDuration::from_hours(REAP_AFTER_HOURS)
    }

    async fn undelete_tool(&self, tenant: &TenantId, id: ToolId) -> Result<Tool, StoreError> {
        let mut session = self.session().await?;
        let latest = self.latest_tool_removal();
        let found = session.hidden_tool(id).await.map_err(failed_to(FIND))?;
        let found = found.filter(|found| found.tool.tenant == *tenant && found.deleted_at > latest);
        let Some(DeletedTool { tool, .. }) = found else { return Err(StoreError::not_found("tool", id)) };
        session.ensure_bundle(tenant, &tool.bundle).await?;
        limits::check_tool_room(&mut session.tx, tenant, &tool.spec).await?;
        let file = session.restore_file(&tool).await?;
        session.show(id, &file).await.map_err(failed_to(RESTORE))?;
        find_announced(session.finish().await?, id)
    }
}

impl Session<'_> {
    /// Deletes a tool whose file has been removed. With a backup it is hidden until it is restored or removed.
    pub(super) async fn delete(&mut self, tool: &Tool, backup: Backup) -> Result<(), StoreError> {
        match backup {
            Backup::Keep => self.hide(tool).await.map_err(failed_to(DELETE)),
            Backup::Discard => self.remove_tool(tool.id).await.map_err(failed_to(DELETE)),
        }
    }

    async fn hide(&mut self, tool: &Tool) -> Result<(), sqlx::Error> {
        sqlx::query("UPDATE tools SET gone_at = $1, stamp = NULL, fault = NULL WHERE id = $2")
            .bind(self.db.now().as_microsecond())
            .bind(tool.id.to_string())
            .execute(&mut *self.tx)
            .await?;
        sqlx::query(
            "DELETE FROM tools WHERE id IN (SELECT id FROM tools WHERE tenant = $1 AND gone_at IS NOT NULL \
             ORDER BY gone_at DESC, id DESC LIMIT $2 OFFSET $3)",
        )
        .bind(tool.tenant.as_str())
        .bind(MAX_REMOVED)
        .bind(MAX_DELETED)
        .execute(&mut *self.tx)
        .await?;
        self.mark_tool_changed(tool.id);
        Ok(())
    }

    async fn hidden_tool(&mut self, id: ToolId) -> Result<Option<DeletedTool>, sqlx::Error> {
        let sql = AssertSqlSafe(format!("{} WHERE t.id = $1", rows::HIDDEN_TOOL));
        let row = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut *self.tx).await?;
        row.as_ref().map(deleted).transpose()
    }

    /// Writes the file of a deleted tool again, with the text of its author if a backup still has it. Tools of toolsets
    /// have no file.
    async fn restore_file(&mut self, tool: &Tool) -> Result<ToolFile, StoreError> {
        let Some(files) = self.db.files.clone().filter(|_| tool.source != Source::Toolset) else {
            return Ok(ToolFile::default());
        };
        let form = tool.path.as_deref().map_or(FileForm::Json, form_of);
        let text = match tool.path.clone() {
            None => None,
            Some(path) => files.run(RESTORE.into(), move |home| history::newest(home, &path)).await?,
        };
        let text = text.map(|text| SourceText { form, text });
        let folder = layout::bundle_folder(&tool.tenant, &tool.bundle);
        let content = Content { spec: &tool.spec, text: text.as_ref(), enabled: tool.enabled };
        self.write_new_file(&folder, form, content).await
    }

    async fn show(&mut self, id: ToolId, file: &ToolFile) -> Result<(), sqlx::Error> {
        let query = sqlx::query("UPDATE tools SET gone_at = NULL WHERE id = $1").bind(id.to_string());
        query.execute(&mut *self.tx).await?;
        self.set_tool_file(id, file).await?;
        self.index_tool_file(file, id);
        self.mark_tool_changed(id);
        Ok(())
    }
}

fn deleted(row: &AnyRow) -> Result<DeletedTool, sqlx::Error> {
    Ok(DeletedTool { tool: rows::tool(row)?, deleted_at: rows::timestamp(row, "gone_at")? })
}
