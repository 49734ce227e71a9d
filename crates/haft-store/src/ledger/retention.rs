//! Removes old calls and the events of calls that are gone.

use std::collections::HashSet;

use haft_core::catalog::StoreError;
use jiff::SignedDuration;
use sqlx::{AssertSqlSafe, Row as _};

use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::time::min_id_at;

/// How many calls are removed in one transaction.
const CALLS_PER_TRANSACTION: usize = 1000;
/// How many ids of calls are looked up at once.
const CALLS_PER_QUERY: u32 = 500;
/// The next ids of calls that have events.
pub(crate) const CALLS_WITH_EVENTS: &str =
    "SELECT DISTINCT call_id FROM call_events WHERE call_id > $1 ORDER BY call_id LIMIT $2";

const CALLS: &str = "remove old calls";
/// Sorts after the id of every call.
const AFTER_EVERY_CALL: &str = "g";

impl Calls {
    /// Removes all calls of a deleted tenant.
    pub(crate) async fn purge(&self, tenant: &str) -> Result<(), sqlx::Error> {
        self.reap_calls_of(tenant, AFTER_EVERY_CALL).await?;
        self.state.usage.forget_before(tenant, AFTER_EVERY_CALL).await?;
        let sizes = sqlx::query("DELETE FROM ledger_sizes WHERE tenant = $1").bind(tenant);
        sizes.execute(&self.db.engine.pool).await?;
        Ok(())
    }

    pub(crate) async fn reap_calls(&self) -> Result<u64, StoreError> {
        let oldest = self.db.now() - SignedDuration::from_hours(24 * i64::from(self.state.keep_days));
        let by_age = (self.state.keep_days > 0).then(|| min_id_at(oldest).to_string());
        let (mut tenant, mut removed) = (String::new(), 0);
        while let Some(next) = self.tenant_after(&tenant).await.map_err(failed_to(CALLS))? {
            tenant = next;
            let by_number = self.oldest_kept(&tenant).await.map_err(failed_to(CALLS))?;
            if let Some(end) = by_age.clone().max(by_number) {
                let count = self.reap_calls_of(&tenant, &end).await.map_err(failed_to(CALLS))?;
                if count > 0 {
                    self.state.usage.forget_before(&tenant, &end).await.map_err(failed_to(CALLS))?;
                }
                removed += count;
            }
        }
        self.state.usage.enforce().await.map_err(failed_to(CALLS))?;
        Ok(removed)
    }

    /// Returns the oldest call of a tenant within the retention limit.
    async fn oldest_kept(&self, tenant: &str) -> Result<Option<String>, sqlx::Error> {
        let Some(skip) = self.db.retention.calls.checked_sub(1) else { return Ok(None) };
        let sql = format!("SELECT id FROM calls WHERE tenant = $1 ORDER BY id DESC LIMIT 1 OFFSET {skip}");
        let row = sqlx::query(AssertSqlSafe(sql)).bind(tenant).fetch_optional(&self.db.engine.pool).await?;
        row.map(|row| row.try_get(0)).transpose()
    }

    /// Returns the next tenant with calls; needs one lookup in the primary key.
    pub(crate) async fn tenant_after(&self, tenant: &str) -> Result<Option<String>, sqlx::Error> {
        let sql = "SELECT tenant FROM calls WHERE tenant > $1 ORDER BY tenant LIMIT 1";
        let row = sqlx::query(sql).bind(tenant).fetch_optional(&self.db.engine.pool).await?;
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
                .fetch_optional(&self.db.engine.pool)
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
                .execute(&self.db.engine.pool)
                .await?;
            removed += done.rows_affected();
            match last {
                Some(last) => start = last,
                None => return Ok(removed),
            }
        }
    }

    /// Removes the events of calls that are gone.
    pub(crate) async fn reap_events(&self) -> Result<(), sqlx::Error> {
        let mut last = String::new();
        loop {
            let found = sqlx::query(CALLS_WITH_EVENTS).bind(&last).bind(i64::from(CALLS_PER_QUERY));
            let found = found.fetch_all(&self.db.engine.pool).await?;
            let ids: Vec<String> = found.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            let Some(end) = ids.last() else { return Ok(()) };
            last.clone_from(end);
            let is_last = ids.len() < CALLS_PER_QUERY as usize;
            for id in self.missing_calls(ids).await? {
                let delete = sqlx::query("DELETE FROM call_events WHERE call_id = $1").bind(id);
                delete.execute(&self.db.engine.pool).await?;
            }
            if is_last {
                return Ok(());
            }
        }
    }

    /// Returns the ids without a call. The key of calls begins with the tenant, so each tenant is queried.
    async fn missing_calls(&self, ids: Vec<String>) -> Result<HashSet<String>, sqlx::Error> {
        let mut missing: HashSet<String> = ids.into_iter().collect();
        // Tenants are read after the ids: a call of a new tenant is stored before its events.
        let mut tenant = String::new();
        while let Some(next) = self.tenant_after(&tenant).await?
            && !missing.is_empty()
        {
            let numbers: Vec<String> = (2..missing.len() + 2).map(|number| format!("${number}")).collect();
            let sql = format!("SELECT id FROM calls WHERE tenant = $1 AND id IN ({})", numbers.join(", "));
            let mut select = sqlx::query(AssertSqlSafe(sql)).bind(&next);
            for id in &missing {
                select = select.bind(id.clone());
            }
            for row in select.fetch_all(&self.db.engine.pool).await? {
                missing.remove(row.try_get::<&str, _>(0)?);
            }
            tenant = next;
        }
        Ok(missing)
    }
}
