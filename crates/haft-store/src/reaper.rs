//! Removes for good what has waited long enough: deleted bundles that stayed empty, old calls, old backups.

use std::path::Path;

use haft_core::bundle::{Bundle, REAP_AFTER_HOURS};
use haft_core::catalog::StoreError;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use crate::engine::fault;
use crate::files::layout::{self, BUNDLE_FILE};
use crate::files::{history, write};
use crate::rows;
use crate::session::Session;
use crate::store::{Inner, Store};
use crate::time::first_id_of;

/// How many calls go in one transaction.
const CHUNK: usize = 1000;
const CALLS: &str = "remove old calls";

/// What the reaper removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// How many bundles.
    pub bundles: usize,
    /// How many calls.
    pub calls: u64,
}

impl Store {
    /// Removes deleted bundles that stayed empty for 48 hours, and calls older than `keep_days`.
    pub async fn reap(&self) -> Result<ReapReport, StoreError> {
        self.run(|inner| async move { inner.reap().await }).await
    }
}

impl Inner {
    pub(crate) async fn reap(&self) -> Result<ReapReport, StoreError> {
        self.reap_refresh_tokens().await.map_err(fault("remove old refresh tokens"))?;
        self.reap_audit().await.map_err(fault("remove old records of changes"))?;
        self.reap_history().await?;
        self.reap_gone().await.map_err(fault("remove tools whose file is gone"))?;
        Ok(ReapReport { bundles: self.reap_bundles().await?, calls: self.reap_calls().await? })
    }

    /// Removes tools whose file did not come back.
    async fn reap_gone(&self) -> Result<(), sqlx::Error> {
        let latest = self.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        sqlx::query("DELETE FROM tools WHERE gone_at <= $1")
            .bind(latest.as_microsecond())
            .execute(&self.engine.pool)
            .await?;
        Ok(())
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
        let oldest = self.now() - SignedDuration::from_hours(24 * i64::from(self.keep_days));
        let by_age = (self.keep_days > 0).then(|| first_id_of(oldest).to_string());
        let (mut tenant, mut removed) = (String::new(), 0);
        while let Some(next) = self.tenant_after(&tenant).await.map_err(fault(CALLS))? {
            tenant = next;
            let by_number = self.oldest_kept(&tenant).await.map_err(fault(CALLS))?;
            if let Some(end) = by_age.clone().max(by_number) {
                removed += self.reap_calls_of(&tenant, &end).await.map_err(fault(CALLS))?;
            }
        }
        Ok(removed)
    }

    /// Returns the oldest call of a tenant that is within the number of calls that are kept.
    async fn oldest_kept(&self, tenant: &str) -> Result<Option<String>, sqlx::Error> {
        let Some(skip) = self.retention.calls.checked_sub(1) else { return Ok(None) };
        let sql = format!("SELECT id FROM calls WHERE tenant = $1 ORDER BY id DESC LIMIT 1 OFFSET {skip}");
        let row = sqlx::query(AssertSqlSafe(sql)).bind(tenant).fetch_optional(&self.engine.pool).await?;
        row.map(|row| row.try_get(0)).transpose()
    }

    async fn reap_history(&self) -> Result<(), StoreError> {
        let Some(files) = &self.files else { return Ok(()) };
        let keep = self.retention;
        let oldest = self.now() - SignedDuration::from_hours(24 * i64::from(keep.history_days));
        let oldest = (keep.history_days > 0).then_some(oldest);
        let copies = usize::try_from(keep.history_copies).ok().filter(|copies| *copies > 0);
        let pruned =
            files.run("remove old backups".into(), move |home| history::prune(home, oldest, copies)).await?;
        if pruned > 0 {
            tracing::info!(pruned, "old backups of definitions were removed");
        }
        Ok(())
    }

    /// Returns the next tenant that has calls; each step is one look into the primary key.
    async fn tenant_after(&self, tenant: &str) -> Result<Option<String>, sqlx::Error> {
        let sql = "SELECT tenant FROM calls WHERE tenant > $1 ORDER BY tenant LIMIT 1";
        let row = sqlx::query(sql).bind(tenant).fetch_optional(&self.engine.pool).await?;
        row.map(|row| row.try_get(0)).transpose()
    }

    /// Removes the calls of a tenant before an id, piece by piece along the primary key: nobody who records a
    /// call waits for all of it.
    async fn reap_calls_of(&self, tenant: &str, end: &str) -> Result<u64, sqlx::Error> {
        let skip = CHUNK - 1;
        let find = format!(
            "SELECT id FROM calls WHERE tenant = $1 AND id > $2 AND id < $3 ORDER BY id LIMIT 1 OFFSET {skip}"
        );
        let (mut start, mut removed) = (String::new(), 0);
        loop {
            let found = sqlx::query(AssertSqlSafe(find.clone()))
                .bind(tenant)
                .bind(&start)
                .bind(end)
                .fetch_optional(&self.engine.pool)
                .await?;
            let last: Option<String> = found.map(|row| row.try_get(0)).transpose()?;
            let until = last.clone().unwrap_or_else(|| end.to_owned());
            let sql =
                "DELETE FROM calls WHERE tenant = $1 AND id > $2 AND id <= $3 AND id < $4 AND final = 1";
            let done = sqlx::query(sql)
                .bind(tenant)
                .bind(&start)
                .bind(&until)
                .bind(end)
                .execute(&self.engine.pool)
                .await?;
            removed += done.rows_affected();
            match last {
                Some(last) => start = last,
                None => return Ok(removed),
            }
        }
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
