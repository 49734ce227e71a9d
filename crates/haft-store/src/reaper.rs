//! Removes for good what has waited long enough: deleted bundles that stayed empty, and old calls.

use std::path::Path;

use haft_core::bundle::{Bundle, REAP_AFTER_HOURS};
use haft_core::catalog::StoreError;
use jiff::SignedDuration;
use sqlx::AssertSqlSafe;

use crate::engine::fault;
use crate::files::layout::{self, BUNDLE_FILE};
use crate::files::write;
use crate::rows;
use crate::session::Session;
use crate::store::{Inner, Store};
use crate::time::first_id_of;

/// What the reaper removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// How many bundles.
    pub bundles: usize,
    /// How many calls.
    pub calls: u64,
}

impl Store {
    /// Removes deleted bundles that stayed empty for 48 hours, and calls older than `keep_days`.
    pub async fn reap(&self) -> Result<Reaped, StoreError> {
        self.run(|inner| async move { inner.reap().await }).await
    }
}

impl Inner {
    pub(crate) async fn reap(&self) -> Result<Reaped, StoreError> {
        Ok(Reaped { bundles: self.reap_bundles().await?, calls: self.reap_calls().await? })
    }

    async fn reap_bundles(&self) -> Result<usize, StoreError> {
        let doing = "remove deleted bundles";
        let latest = self.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        let sql = format!("{} WHERE soft_deleted_at <= $1", rows::BUNDLE);
        let due = sqlx::query(AssertSqlSafe(sql))
            .bind(latest.as_microsecond())
            .fetch_all(&self.engine.pool)
            .await
            .map_err(fault(doing))?;
        if due.is_empty() {
            return Ok(0);
        }
        let mut session = self.session().await?;
        let mut removed = 0;
        for row in &due {
            let id = rows::bundle(row).map_err(fault(doing))?.id;
            // Once more under the lock: it may have been revived.
            let found = session.find_bundle(id).await.map_err(fault(doing))?;
            if let Some(bundle) = found.filter(|bundle| bundle.soft_deleted_at.is_some_and(|at| at <= latest))
                && session.reap_bundle(&bundle).await?
            {
                removed += 1;
            }
        }
        session.finish().await?;
        Ok(removed)
    }

    async fn reap_calls(&self) -> Result<u64, StoreError> {
        if self.keep_days == 0 {
            return Ok(0);
        }
        let oldest = self.now() - SignedDuration::from_hours(24 * i64::from(self.keep_days));
        let done = sqlx::query("DELETE FROM calls WHERE final = 1 AND id < $1")
            .bind(first_id_of(oldest).to_string())
            .execute(&self.engine.pool)
            .await
            .map_err(fault("remove old calls"))?;
        Ok(done.rows_affected())
    }
}

impl Session<'_> {
    async fn reap_bundle(&mut self, bundle: &Bundle) -> Result<bool, StoreError> {
        let doing = "remove a deleted bundle";
        if self.count_in(bundle).await.map_err(fault(doing))? > 0 {
            return Ok(false);
        }
        if let Some(files) = self.inner.files.clone() {
            let folder = layout::bundle_folder(&bundle.tenant, &bundle.slug);
            if !files.run(doing.into(), move |home| remove_empty(&home.join(folder))).await? {
                return Ok(false);
            }
        }
        self.learn_bundle(&bundle.tenant, &bundle.slug, None);
        self.remove_bundle(bundle.id).await.map_err(fault(doing))?;
        Ok(true)
    }
}

/// Removes a folder that holds nothing but its description.
fn remove_empty(folder: &Path) -> std::io::Result<bool> {
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
