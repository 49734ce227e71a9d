//! Removes deleted bundles, hidden tools, old revisions and old backups.

use std::path::Path;

use haft_core::bundle::{Bundle, REAP_AFTER_HOURS};
use haft_core::catalog::StoreError;
use haft_definition::folder::BUNDLE_FILE;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use super::session::Session;
use super::state::CatalogState;
use crate::engine::failed_to;
use crate::files::{history, layout, write};
use crate::rows;

/// How many tools are read at once.
const TOOLS_PER_QUERY: u32 = 500;

/// Tools with more revisions than are kept: id, newest number, published number.
pub(crate) const GROWN_TOOLS: &str = "SELECT id, revision AS newest, COALESCE(published_revision, 0) AS kept \
    FROM tools WHERE revision > $1 AND id > $2 ORDER BY id LIMIT $3";

impl CatalogState {
    /// Removes revisions of tools beyond the number that is kept. The newest and the published one stay.
    pub(crate) async fn reap_tool_revisions(&self) -> Result<(), sqlx::Error> {
        let keep = i64::from(self.db.retention.tool_revisions);
        if keep == 0 {
            return Ok(());
        }
        let mut last = String::new();
        loop {
            let grown = sqlx::query(GROWN_TOOLS).bind(keep).bind(&last).bind(i64::from(TOOLS_PER_QUERY));
            let grown = grown.fetch_all(&self.db.engine.pool).await?;
            for row in &grown {
                last = row.try_get("id")?;
                let sql = "DELETE FROM revisions WHERE tool_id = $1 AND number <= $2 AND number <> $3";
                let delete = sqlx::query(sql).bind(&last).bind(row.try_get::<i64, _>("newest")? - keep);
                delete.bind(row.try_get::<i64, _>("kept")?).execute(&self.db.engine.pool).await?;
            }
            if grown.len() < TOOLS_PER_QUERY as usize {
                return Ok(());
            }
        }
    }

    /// Removes hidden tools: deleted ones, and those whose file did not come back in time.
    pub(crate) async fn reap_missing(&self) -> Result<(), sqlx::Error> {
        let latest = self.db.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        sqlx::query("DELETE FROM tools WHERE gone_at <= $1")
            .bind(latest.as_microsecond())
            .execute(&self.db.engine.pool)
            .await?;
        Ok(())
    }

    pub(crate) async fn reap_bundles(&self) -> Result<usize, StoreError> {
        let action = "remove deleted bundles";
        let latest = self.db.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        let sql = format!("{} WHERE soft_deleted_at <= $1", rows::BUNDLE);
        let due = sqlx::query(AssertSqlSafe(sql))
            .bind(latest.as_microsecond())
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(action))?;
        if due.is_empty() {
            return Ok(0);
        }
        let mut session = self.session().await?;
        let mut removed = 0;
        for row in &due {
            let id = rows::bundle(row).map_err(failed_to(action))?.id;
            // Read again under the lock: it may have been restored.
            let found = session.find_bundle(id).await.map_err(failed_to(action))?;
            if let Some(bundle) = found.filter(|bundle| bundle.soft_deleted_at.is_some_and(|at| at <= latest))
                && session.reap_bundle(&bundle).await?
            {
                removed += 1;
            }
        }
        session.finish().await?;
        Ok(removed)
    }

    pub(crate) async fn reap_history(&self) -> Result<(), StoreError> {
        let Some(files) = &self.db.files else { return Ok(()) };
        let keep = self.db.retention;
        let oldest = self.db.now() - SignedDuration::from_hours(24 * i64::from(keep.history_days));
        let oldest = (keep.history_days > 0).then_some(oldest);
        let copies = usize::try_from(keep.history_copies).ok().filter(|copies| *copies > 0);
        let pruned =
            files.run("remove old backups".into(), move |home| history::prune(home, oldest, copies)).await?;
        if pruned > 0 {
            tracing::info!(pruned, "removed old backups of definitions");
        }
        Ok(())
    }
}

impl Session<'_> {
    async fn reap_bundle(&mut self, bundle: &Bundle) -> Result<bool, StoreError> {
        let action = "remove a deleted bundle";
        if self.count_content(bundle).await.map_err(failed_to(action))? > 0 {
            return Ok(false);
        }
        if let Some(files) = self.db.files.clone() {
            let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
            if !files.run(action.into(), move |home| remove_empty(&home.join(folder))).await? {
                return Ok(false);
            }
        }
        self.index_bundle(&bundle.tenant, &bundle.slug, None);
        self.remove_bundle(bundle.id).await.map_err(failed_to(action))?;
        Ok(true)
    }
}

/// Removes a folder that holds nothing but `bundle.yaml`; returns whether it was removed.
pub(super) fn remove_empty(folder: &Path) -> std::io::Result<bool> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    for entry in entries {
        if entry?.file_name() != BUNDLE_FILE {
            return Ok(false);
        }
    }
    write::remove(&folder.join(BUNDLE_FILE))?;
    write::remove(folder)?;
    Ok(true)
}
