//! Removes everything that a deleted tenant owned.
//!
//! Its folder of definitions is renamed before the rows are deleted, and removed afterwards: a crash in between leaves
//! a hidden folder that no scan reads. Calls are deleted last, in small transactions; the reaper removes those that
//! were still running.

use std::path::Path;

use haft_core::bundle::REAP_AFTER_HOURS;
use haft_core::catalog::StoreError;
use haft_core::name::TenantId;
use haft_core::resource::ResourceKind;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};
use uuid::Uuid;

use super::Tenants;
use crate::catalog::Session;
use crate::engine::failed_to;
use crate::files::layout::{self, SKILLS};
use crate::files::write::{self, Undo};
use crate::ledger::LedgerBackend;
use crate::resources::count_change;
use crate::rows;

const PURGE: &str = "remove the data of the deleted tenant";
/// The start of the names of folders that are being removed.
const REMOVED_FOLDER: &str = ".removed-";

/// Deletes the rows of a tenant, in an order that keeps references valid. A table with the column `tenant` that is not
/// named here, in [`DELETED_LATER`] or in [`KEPT`] fails a test.
const STATEMENTS: &[&str] = &[
    // With their contents and chunks.
    "DELETE FROM pipeline_documents WHERE tenant = $1",
    "DELETE FROM pipelines WHERE id IN (SELECT id FROM resources WHERE tenant = $1)",
    "DELETE FROM toolset_packages WHERE tenant = $1",
    "DELETE FROM toolsets WHERE tenant = $1",
    // With their steps.
    "DELETE FROM runs WHERE tenant = $1",
    // With their revisions.
    "DELETE FROM resources WHERE tenant = $1",
    "DELETE FROM resource_files WHERE tenant = $1",
    "DELETE FROM messages WHERE chat_id IN (SELECT id FROM chats WHERE tenant = $1)",
    "DELETE FROM chats WHERE tenant = $1",
    "DELETE FROM workspace_manifests WHERE tenant = $1",
    "DELETE FROM workspaces WHERE tenant = $1",
    "DELETE FROM tool_examples WHERE tenant = $1",
    "DELETE FROM mcp_pins WHERE tool_id IN (SELECT id FROM tools WHERE tenant = $1)",
    "DELETE FROM revisions WHERE tool_id IN (SELECT id FROM tools WHERE tenant = $1)",
    "DELETE FROM tools WHERE tenant = $1",
    "DELETE FROM bundles WHERE tenant = $1",
    "DELETE FROM unreadable WHERE tenant = $1",
    "DELETE FROM mcp_servers WHERE tenant = $1",
    "DELETE FROM refresh_tokens WHERE tenant = $1",
    "DELETE FROM accounts WHERE tenant = $1",
    "DELETE FROM account_providers WHERE tenant = $1",
    "DELETE FROM pending_logins WHERE tenant = $1",
    "DELETE FROM device_connections WHERE tenant = $1",
    "DELETE FROM credentials WHERE tenant = $1",
    "DELETE FROM sessions WHERE token_hash IN (SELECT hash FROM tokens WHERE tenant = $1)",
    // With their grants.
    "DELETE FROM tokens WHERE tenant = $1",
    "DELETE FROM oauth_clients WHERE tenant = $1",
    "DELETE FROM actor_groups WHERE tenant = $1",
    "DELETE FROM sessions WHERE token_hash IN (SELECT actor_id || '@' || tenant FROM memberships WHERE tenant = $1)",
    "DELETE FROM login_links WHERE token_hash IN (SELECT actor_id || '@' || tenant FROM memberships WHERE tenant = $1)",
    "DELETE FROM assigned_rights WHERE tenant = $1",
    "DELETE FROM sign_on_logins WHERE tenant = $1",
    "DELETE FROM memberships WHERE tenant = $1",
    "DELETE FROM actors WHERE NOT EXISTS (SELECT 1 FROM memberships WHERE memberships.actor_id = actors.id) \
     AND $1 <> ''",
    "DELETE FROM policies WHERE tenant = $1",
    "DELETE FROM approvals WHERE tenant = $1",
    "DELETE FROM approval_grants WHERE tenant = $1",
    "DELETE FROM webhook_deliveries WHERE webhook_id IN (SELECT id FROM webhooks WHERE tenant = $1)",
    "DELETE FROM webhooks WHERE tenant = $1",
    // What has not started never will.
    "DELETE FROM calls WHERE tenant = $1 AND status IN ('pending', 'awaiting_approval')",
];

/// Deletes the rows of tenants that were deleted before a time and own no other data.
pub(crate) const FORGET: &str = "DELETE FROM tenants WHERE deleted_at <= $1 \
    AND NOT EXISTS (SELECT 1 FROM audit WHERE audit.tenant = tenants.id) \
    AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.tenant = tenants.id) \
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.tenant = tenants.id)";

/// Tables whose rows are deleted in small transactions.
#[cfg(test)]
const DELETED_LATER: [&str; 2] = ["calls", "ledger_sizes"];
/// Tables whose rows stay: the audit log shows who deleted the tenant.
#[cfg(test)]
const KEPT: [&str; 1] = ["audit"];

impl Tenants {
    /// Removes the definitions, credentials, tokens and calls of a deleted tenant.
    pub(super) async fn purge(&self, id: &TenantId) -> Result<(), StoreError> {
        let mut session = self.catalog.state.session().await?;
        // Somebody may have created the tenant again.
        let sql = "SELECT 1 FROM tenants WHERE id = $1 AND deleted_at IS NOT NULL";
        let deleted = sqlx::query(sql).bind(id.as_str()).fetch_optional(&mut *session.tx).await;
        if deleted.map_err(failed_to(PURGE))?.is_none() {
            return Ok(());
        }
        let removed_folder = session.hide_tenant_folder(id).await?;
        session.mark_catalog_removed(id).await.map_err(failed_to(PURGE))?;
        for statement in STATEMENTS {
            let query = sqlx::query(*statement).bind(id.as_str());
            query.execute(&mut *session.tx).await.map_err(failed_to(PURGE))?;
        }
        for kind in ResourceKind::ALL {
            count_change(&mut session.tx, kind.plural()).await.map_err(failed_to(PURGE))?;
        }
        session.mark_tenant_removed(id.clone());
        session.finish().await?;
        self.vault.load().await?;
        self.webhooks.load().await?;
        self.access.signal_change();
        if let (Some(files), Some(folder)) = (&self.db.files, removed_folder) {
            let action = format!("remove the folder `{folder}`");
            files.run(action, move |home| std::fs::remove_dir_all(home.join(folder))).await?;
        }
        // Calls that are recorded but not in the table yet.
        match &self.calls.state.backend {
            LedgerBackend::Journal(_) => self.calls.drain_journal().await?,
            LedgerBackend::Database(group_commit) => group_commit.flush().await,
        }
        self.calls.purge(id.as_str()).await.map_err(failed_to(PURGE))
    }

    /// Removes calls that were recorded after their tenant was deleted, folders that a crash left behind, and the rows of
    /// deleted tenants that own no other data.
    pub(crate) async fn reap_deleted(&self) -> Result<(), StoreError> {
        let sql = "SELECT id FROM tenants WHERE deleted_at IS NOT NULL \
                   AND (SELECT 1 FROM calls WHERE calls.tenant = tenants.id LIMIT 1) = 1";
        let found = sqlx::query(sql).fetch_all(&self.db.engine.pool).await.map_err(failed_to(PURGE))?;
        for row in found {
            let id: String = row.try_get(0).map_err(failed_to(PURGE))?;
            self.calls.purge(&id).await.map_err(failed_to(PURGE))?;
        }
        let latest = self.db.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        let forget = sqlx::query(FORGET).bind(latest.as_microsecond());
        forget.execute(&self.db.engine.pool).await.map_err(failed_to(PURGE))?;
        let Some(files) = &self.db.files else { return Ok(()) };
        files.run("remove the folders of deleted tenants".into(), remove_leftovers).await
    }
}

/// Removes folders that were renamed but not removed.
fn remove_leftovers(home: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(home.join(SKILLS))? {
        let entry = entry?;
        let is_leftover = entry.file_name().to_str().is_some_and(|name| name.starts_with(REMOVED_FOLDER));
        if is_leftover && entry.file_type()?.is_dir() {
            match std::fs::remove_dir_all(entry.path()) {
                // Another process removes it, too.
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

impl Session<'_> {
    /// Renames the folder of a tenant so that scans ignore it; returns its new name.
    async fn hide_tenant_folder(&mut self, id: &TenantId) -> Result<Option<String>, StoreError> {
        let Some(files) = self.db.files.clone() else { return Ok(None) };
        let folder = layout::tenant_folder(id);
        let hidden = format!("{SKILLS}/{REMOVED_FOLDER}{}", Uuid::now_v7().simple());
        let (from, to) = (files.at(&folder), files.at(&hidden));
        let undo = Undo::moved(from.clone(), to.clone());
        let moved = files
            .run(format!("rename the folder `{folder}`"), move |_| match write::rename_to_new(&from, &to) {
                Ok(()) => Ok(Some(undo)),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    let mut undo = undo;
                    undo.disarm();
                    Ok(None)
                }
                Err(error) => {
                    let mut undo = undo;
                    undo.disarm();
                    Err(error)
                }
            })
            .await?;
        let is_moved = moved.is_some();
        if let Some(undo) = moved {
            self.add_undo(undo);
        }
        let prefix = format!("{folder}/");
        let paths: Vec<String> =
            self.index.files.keys().filter(|path| path.starts_with(&prefix)).cloned().collect();
        for path in paths {
            self.index_file(path, None);
        }
        let slugs: Vec<_> = self.index.bundles.keys().filter(|key| key.0 == *id).cloned().collect();
        for (tenant, slug) in slugs {
            self.index_bundle(&tenant, &slug, None);
        }
        Ok(is_moved.then_some(hidden))
    }

    /// Marks the tools, bundles and unreadable files of a tenant as removed.
    async fn mark_catalog_removed(&mut self, id: &TenantId) -> Result<(), sqlx::Error> {
        let select = |column: &str, table: &str| {
            AssertSqlSafe(format!("SELECT {column} FROM {table} WHERE tenant = $1"))
        };
        for row in sqlx::query(select("id", "tools")).bind(id.as_str()).fetch_all(&mut *self.tx).await? {
            self.mark_tool_changed(rows::parse_column(&row, "id")?);
        }
        for row in sqlx::query(select("id", "bundles")).bind(id.as_str()).fetch_all(&mut *self.tx).await? {
            self.mark_bundle_changed(rows::parse_column(&row, "id")?);
        }
        for row in
            sqlx::query(select("path", "unreadable")).bind(id.as_str()).fetch_all(&mut *self.tx).await?
        {
            self.mark_path_changed(row.try_get("path")?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    #[tokio::test]
    async fn every_table_of_a_tenant_is_known() {
        let home = tempfile::tempdir().unwrap();
        let engine = Engine::sqlite(&home.path().join("haft.db")).await.unwrap();
        crate::migrate::run(&engine).await.unwrap();
        let sql = "SELECT t.name FROM sqlite_master t JOIN pragma_table_info(t.name) c \
                   WHERE t.type = 'table' AND c.name = 'tenant' ORDER BY t.name";
        let tables = sqlx::query(sql).fetch_all(&engine.pool).await.unwrap();
        assert!(tables.len() >= 9, "{}", tables.len());
        for row in tables {
            let table: String = row.get(0);
            let is_deleted = STATEMENTS.iter().any(|sql| sql.starts_with(&format!("DELETE FROM {table} ")));
            let is_known = DELETED_LATER.contains(&table.as_str()) || KEPT.contains(&table.as_str());
            assert!(is_deleted || is_known, "the rows of a deleted tenant in `{table}` are not removed");
        }
        engine.close().await;
    }
}
