//! Removes expired data: deleted bundles, old calls, audit records and backups.

use std::path::Path;
use std::sync::Arc;

use haft_core::bundle::{Bundle, REAP_AFTER_HOURS};
use haft_core::catalog::StoreError;
use haft_definition::folder::BUNDLE_FILE;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use crate::engine::failed_to;
use crate::files::layout;
use crate::files::{history, write};
use crate::rows;
use crate::session::Session;
use crate::store::{Inner, Store};
use crate::time::min_id_at;

/// How many calls are removed in one transaction.
const CALLS_PER_TRANSACTION: usize = 1000;
const CALLS: &str = "remove old calls";

/// The amount of removed data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ReapReport {
    /// The number of bundles.
    pub bundles: usize,
    /// The number of calls.
    pub calls: u64,
}

impl Store {
    /// Removes bundles deleted 48 hours ago, calls older than `keep_days`, and other expired data.
    pub async fn reap(&self) -> Result<ReapReport, StoreError> {
        self.run(|inner| async move { inner.reap().await }).await
    }
}

impl Inner {
    pub(crate) async fn reap(self: &Arc<Self>) -> Result<ReapReport, StoreError> {
        self.reap_refresh_tokens().await.map_err(failed_to("remove old refresh tokens"))?;
        self.reap_audit().await.map_err(failed_to("remove old audit records"))?;
        self.reap_logins().await.map_err(failed_to("remove expired sessions"))?;
        self.reap_webhooks().await.map_err(failed_to("remove old deliveries to webhooks"))?;
        self.reap_deleted_tenants().await?;
        self.reap_history().await?;
        self.reap_idempotency_keys().await.map_err(failed_to("remove old idempotency keys"))?;
        self.reap_limits().await.map_err(failed_to("remove old counters of limits"))?;
        self.reap_missing().await.map_err(failed_to("remove tools without a file"))?;
        self.reap_hidden_resources().await?;
        self.reap_runs().await.map_err(failed_to("remove old runs"))?;
        let (bundles, calls) = (self.reap_bundles().await?, self.reap_calls().await?);
        // After the calls, whose events go with them.
        self.reap_growth().await?;
        Ok(ReapReport { bundles, calls })
    }

    /// Removes hidden tools whose file did not come back in time.
    async fn reap_missing(&self) -> Result<(), sqlx::Error> {
        let latest = self.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        sqlx::query("DELETE FROM tools WHERE gone_at <= $1")
            .bind(latest.as_microsecond())
            .execute(&self.engine.pool)
            .await?;
        Ok(())
    }

    async fn reap_bundles(&self) -> Result<usize, StoreError> {
        let action = "remove deleted bundles";
        let latest = self.now() - SignedDuration::from_hours(REAP_AFTER_HOURS);
        let sql = format!("{} WHERE soft_deleted_at <= $1", rows::BUNDLE);
        let due = sqlx::query(AssertSqlSafe(sql))
            .bind(latest.as_microsecond())
            .fetch_all(&self.engine.pool)
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

    async fn reap_calls(&self) -> Result<u64, StoreError> {
        let oldest = self.now() - SignedDuration::from_hours(24 * i64::from(self.keep_days));
        let by_age = (self.keep_days > 0).then(|| min_id_at(oldest).to_string());
        let (mut tenant, mut removed) = (String::new(), 0);
        while let Some(next) = self.tenant_after(&tenant).await.map_err(failed_to(CALLS))? {
            tenant = next;
            let by_number = self.oldest_kept(&tenant).await.map_err(failed_to(CALLS))?;
            if let Some(end) = by_age.clone().max(by_number) {
                let count = self.reap_calls_of(&tenant, &end).await.map_err(failed_to(CALLS))?;
                if count > 0 {
                    self.usage.forget_before(&tenant, &end).await.map_err(failed_to(CALLS))?;
                }
                removed += count;
            }
        }
        self.usage.enforce().await.map_err(failed_to(CALLS))?;
        Ok(removed)
    }

    /// Returns the oldest call of a tenant within the retention limit.
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
            tracing::info!(pruned, "removed old backups of definitions");
        }
        Ok(())
    }

    /// Returns the next tenant with calls; needs one lookup in the primary key.
    pub(crate) async fn tenant_after(&self, tenant: &str) -> Result<Option<String>, sqlx::Error> {
        let sql = "SELECT tenant FROM calls WHERE tenant > $1 ORDER BY tenant LIMIT 1";
        let row = sqlx::query(sql).bind(tenant).fetch_optional(&self.engine.pool).await?;
        row.map(|row| row.try_get(0)).transpose()
    }

    /// Removes the calls of a tenant before an id, in small transactions along the primary key, so that recording a
    /// call does not wait long.
    pub(crate) async fn reap_calls_of(&self, tenant: &str, end: &str) -> Result<u64, sqlx::Error> {
        let skip = CALLS_PER_TRANSACTION - 1;
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
        let action = "remove a deleted bundle";
        if self.count_content(bundle).await.map_err(failed_to(action))? > 0 {
            return Ok(false);
        }
        if let Some(files) = self.inner.files.clone() {
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
