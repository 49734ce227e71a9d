//! The limits of the ledger in bytes: the oldest bodies are removed first, and the record of who called what stays.
//!
//! Sizes are counted in memory and added to a table now and then, by tenant and time. The limits are checked at the same
//! occasion, before further calls are stored, so that the ledger exceeds them by little.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use haft_core::tenant::TenantSettings;
use sqlx::{Any, Row as _, Transaction};

use super::record::{self, CallRow};
use crate::engine::Engine;
use crate::rows;
use crate::settings::Retention;
use crate::stored_bytes::{ENDED_RUN_BYTES, KEPT_BYTES, remove_ended_runs};

/// How many digits of an id make a bucket.
const BUCKET_DIGITS: usize = 6;
/// Follows every id, because ids are hexadecimal.
const AFTER_ALL: &str = "g";
/// A record without its body is about as long. Shorter ones are kept.
const MIN_TRIMMED_BYTES: i64 = 1024;
/// How many records are read at once: each may have several megabytes.
const TRIMMED_AT_ONCE: i64 = 16;
/// How many records are deleted at once.
const DELETED_AT_ONCE: i64 = 1000;
/// The limits are checked after this part of the smaller one was stored.
const CHECKS_PER_LIMIT: u64 = 64;
/// The part of `max_stored_bytes` that is reserved for calls and ended runs (1/16): otherwise a caller could erase the
/// records of calls by filling a chat or a workspace.
const MIN_SHARE: u64 = 16;
/// The most and least bytes between two checks.
const CHECK_BYTES: std::ops::RangeInclusive<u64> = 64 * 1024..=64 * 1024 * 1024;

/// The limits in bytes; 0 means no limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LedgerLimits {
    pub(crate) tenant: u64,
    pub(crate) total: u64,
}

impl LedgerLimits {
    pub(crate) fn of(retention: &Retention) -> Self {
        Self { tenant: retention.tenant_bytes, total: retention.ledger_bytes }
    }

    fn check_interval(self, of_tenants: &BTreeMap<String, CallLimit>) -> u64 {
        let of_tenants = of_tenants.values().map(|limit| limit.all);
        let limits = [self.tenant, self.total].into_iter().chain(of_tenants);
        let smallest = limits.filter(|limit| *limit > 0).min().unwrap_or(u64::MAX);
        (smallest / CHECKS_PER_LIMIT).clamp(*CHECK_BYTES.start(), *CHECK_BYTES.end())
    }
}

/// The bytes that a tenant with `max_stored_bytes` may store.
struct CallLimit {
    /// Its calls.
    calls: u64,
    /// Everything.
    all: u64,
}

/// Counts the stored bytes and enforces the limits.
pub(crate) struct LedgerUsage {
    engine: Engine,
    limits: LedgerLimits,
    /// How many bytes may be stored between two checks.
    check_bytes: AtomicU64,
    added: Mutex<Added>,
    /// Held while bodies are removed.
    trimming: tokio::sync::Mutex<()>,
}

/// What was stored since the last check.
#[derive(Default)]
struct Added {
    buckets: BTreeMap<(String, String), i64>,
    bytes: u64,
}

impl LedgerUsage {
    pub(crate) fn new(engine: &Engine, limits: LedgerLimits) -> Self {
        Self {
            engine: engine.clone(),
            limits,
            // Until the first check knows the limits of the tenants.
            check_bytes: AtomicU64::new(*CHECK_BYTES.start()),
            added: Mutex::default(),
            trimming: tokio::sync::Mutex::default(),
        }
    }

    /// Counts stored rows, and enforces the limits if a check is due. A failure is logged: the rows are stored.
    pub(crate) async fn count(&self, rows: &[CallRow]) {
        let due = {
            let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
            for row in rows {
                let key = (row.tenant.to_string(), bucket_of(&row.id.to_string()));
                let bytes =
                    i64::try_from(row.record.len()).unwrap_or(i64::MAX).saturating_add(row.result_bytes);
                let counted = added.buckets.entry(key).or_default();
                *counted = counted.saturating_add(bytes);
                added.bytes = added.bytes.saturating_add(bytes.unsigned_abs());
            }
            added.bytes >= self.check_bytes.load(Ordering::Relaxed)
        };
        if due && let Err(error) = self.enforce().await {
            tracing::warn!(%error, "cannot enforce the size limits of the ledger");
        }
    }

    /// Stores the counted sizes, and removes bodies where a limit is exceeded.
    pub(crate) async fn enforce(&self) -> Result<(), sqlx::Error> {
        let _trimming = self.trimming.lock().await;
        self.save().await?;
        let of_tenants = self.tenant_limits().await?;
        self.check_bytes.store(self.limits.check_interval(&of_tenants), Ordering::Relaxed);
        let sql = "SELECT tenant, CAST(SUM(bytes) AS BIGINT) FROM ledger_sizes GROUP BY tenant";
        let mut tenants = Vec::new();
        for row in sqlx::query(sql).fetch_all(&self.engine.pool).await? {
            let (tenant, bytes): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            tenants.push((u64::try_from(bytes).unwrap_or_default(), tenant));
        }
        for (bytes, tenant) in &mut tenants {
            let own = of_tenants.get(tenant.as_str()).map(|limit| limit.calls);
            let excess = excess(*bytes, self.limits.tenant).max(own.map_or(0, |limit| excess(*bytes, limit)));
            *bytes -= self.trim(tenant, excess).await?.min(*bytes);
        }
        // The tenant that takes most gives first.
        tenants.sort_unstable_by(|a, b| b.cmp(a));
        let mut missing = excess(tenants.iter().map(|(bytes, _)| bytes).sum(), self.limits.total);
        for (bytes, tenant) in &tenants {
            missing = missing.saturating_sub(self.trim(tenant, missing.min(*bytes)).await?);
        }
        Ok(())
    }

    /// Returns the number of bytes that the calls of a tenant use.
    pub(crate) async fn bytes_of(&self, tenant: &str) -> Result<u64, sqlx::Error> {
        let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM ledger_sizes WHERE tenant = $1";
        let stored: i64 = sqlx::query(sql).bind(tenant).fetch_one(&self.engine.pool).await?.try_get(0)?;
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let new: i64 =
            added.buckets.iter().filter(|((owner, _), _)| owner == tenant).map(|(_, bytes)| *bytes).sum();
        Ok(u64::try_from(stored.saturating_add(new)).unwrap_or_default())
    }

    /// Returns the number of bytes that the calls of each tenant with `max_stored_bytes` may use: the limit without all other
    /// data, but at least a fixed part of it. Removes the oldest ended runs if they use too much.
    async fn tenant_limits(&self) -> Result<BTreeMap<String, CallLimit>, sqlx::Error> {
        let sql = "SELECT id, settings FROM tenants WHERE deleted_at IS NULL AND settings LIKE '%max_stored_bytes%'";
        let mut limits = BTreeMap::new();
        for row in sqlx::query(sql).fetch_all(&self.engine.pool).await? {
            let tenant: String = row.try_get(0)?;
            let settings: TenantSettings = rows::json_column(&row, "settings")?;
            let Some(max) = settings.limits.max_stored_bytes else { continue };
            let mut left = max;
            for sql in KEPT_BYTES {
                left = left.saturating_sub(self.sum(sql, &tenant).await?);
            }
            // 0 would mean no limit.
            let least = (max / MIN_SHARE).max(1);
            left = left.max(least);
            // Ended runs get at most half of the remaining space, so that calls keep the rest.
            let runs = self.sum(ENDED_RUN_BYTES, &tenant).await?;
            let removed = remove_ended_runs(&self.engine, &tenant, excess(runs, (left / 2).max(1))).await?;
            left = left.saturating_sub(runs.saturating_sub(removed));
            limits.insert(tenant, CallLimit { calls: left.max(least), all: max });
        }
        Ok(limits)
    }

    async fn sum(&self, sql: &'static str, tenant: &str) -> Result<u64, sqlx::Error> {
        let row = sqlx::query(sql).bind(tenant).fetch_one(&self.engine.pool).await?;
        Ok(u64::try_from(row.try_get::<i64, _>(0)?).unwrap_or_default())
    }

    async fn save(&self) -> Result<(), sqlx::Error> {
        let added = std::mem::take(&mut *self.added.lock().unwrap_or_else(PoisonError::into_inner));
        for ((tenant, bucket), bytes) in added.buckets {
            let sql = "INSERT INTO ledger_sizes (tenant, bucket, bytes) VALUES ($1, $2, $3) \
                       ON CONFLICT (tenant, bucket) DO UPDATE SET bytes = ledger_sizes.bytes + excluded.bytes, \
                       trimmed_to = CASE ledger_sizes.trimmed_to WHEN 'g' THEN '' ELSE ledger_sizes.trimmed_to END";
            sqlx::query(sql).bind(tenant).bind(bucket).bind(bytes).execute(&self.engine.pool).await?;
        }
        Ok(())
    }

    /// Frees space of a tenant, and returns how much: first its oldest bodies, then its oldest records.
    async fn trim(&self, tenant: &str, bytes: u64) -> Result<u64, sqlx::Error> {
        let mut freed = 0;
        while freed < bytes {
            match self.trim_bodies(tenant).await? {
                Some(more) => freed += more,
                None => break,
            }
        }
        while freed < bytes {
            match self.delete_records(tenant, bytes - freed).await? {
                0 => break,
                more => freed += more,
            }
        }
        if freed > 0 {
            tracing::info!(
                tenant,
                freed,
                "removed the oldest bodies of calls: the size limit of the ledger is exceeded"
            );
        }
        Ok(freed)
    }

    /// Removes a few bodies of the oldest bucket that has some; `None` if no bucket has any.
    async fn trim_bodies(&self, tenant: &str) -> Result<Option<u64>, sqlx::Error> {
        let sql = "SELECT bucket, trimmed_to FROM ledger_sizes WHERE tenant = $1 AND trimmed_to < $2 ORDER BY bucket LIMIT 1";
        let found = sqlx::query(sql).bind(tenant).bind(AFTER_ALL).fetch_optional(&self.engine.pool).await?;
        let Some(found) = found else { return Ok(None) };
        let (bucket, trimmed_to): (String, String) = (found.try_get(0)?, found.try_get(1)?);
        let sql = "SELECT id, record, result_bytes FROM calls WHERE tenant = $1 AND id > $2 AND id < $3 AND final = 1 \
                   AND (OCTET_LENGTH(record) > $4 OR result_bytes > 0) ORDER BY id LIMIT $5";
        let rows = sqlx::query(sql)
            .bind(tenant)
            .bind(if trimmed_to.is_empty() { &bucket } else { &trimmed_to })
            .bind(format!("{bucket}{AFTER_ALL}"))
            .bind(MIN_TRIMMED_BYTES)
            .bind(TRIMMED_AT_ONCE)
            .fetch_all(&self.engine.pool)
            .await?;
        let mut tx = self.engine.begin().await?;
        let (mut freed, mut last) = (0_i64, AFTER_ALL.to_owned());
        for row in &rows {
            let (id, text): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
            id.clone_into(&mut last);
            let Ok(short) = record::parse(text).map(haft_core::call::CallRecord::without_body) else {
                continue;
            };
            let Ok(short) = CallRow::new(&short) else { continue };
            // The result itself is removed when its call no longer refers to it.
            let sql = "UPDATE calls SET record = $1, result_bytes = 0 WHERE tenant = $2 AND id = $3";
            sqlx::query(sql).bind(&*short.record).bind(tenant).bind(id).execute(&mut *tx).await?;
            let difference = text.len().saturating_sub(short.record.len());
            let result: i64 = row.try_get(2)?;
            freed =
                freed.saturating_add(i64::try_from(difference).unwrap_or(i64::MAX)).saturating_add(result);
        }
        let sql =
            "UPDATE ledger_sizes SET bytes = bytes - $1, trimmed_to = $2 WHERE tenant = $3 AND bucket = $4";
        sqlx::query(sql).bind(freed).bind(last).bind(tenant).bind(bucket).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(Some(u64::try_from(freed).unwrap_or_default()))
    }

    /// Deletes some of the oldest records, at most as many as needed; returns the freed bytes.
    async fn delete_records(&self, tenant: &str, bytes: u64) -> Result<u64, sqlx::Error> {
        let sql = "SELECT id, OCTET_LENGTH(record) + result_bytes FROM calls WHERE tenant = $1 AND final = 1 \
                   ORDER BY id LIMIT $2";
        let rows = sqlx::query(sql).bind(tenant).bind(DELETED_AT_ONCE).fetch_all(&self.engine.pool).await?;
        let (mut freed, mut buckets, mut last) = (0, BTreeMap::<String, i64>::new(), None);
        for row in &rows {
            if freed >= bytes {
                break;
            }
            let (id, size): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
            freed += u64::try_from(size).unwrap_or_default();
            *buckets.entry(bucket_of(&id)).or_default() += size;
            last = Some(id);
        }
        let mut tx = self.engine.begin().await?;
        let sql = "DELETE FROM calls WHERE tenant = $1 AND id <= $2 AND final = 1";
        sqlx::query(sql).bind(tenant).bind(last).execute(&mut *tx).await?;
        for (bucket, size) in buckets {
            subtract(&mut tx, tenant, &bucket, size).await?;
        }
        tx.commit().await?;
        Ok(freed)
    }

    /// Corrects the sizes after the calls of a tenant before an id were deleted.
    pub(crate) async fn forget_before(&self, tenant: &str, end: &str) -> Result<(), sqlx::Error> {
        let bucket = bucket_of(end);
        let mut tx = self.engine.begin().await?;
        let sql = "DELETE FROM ledger_sizes WHERE tenant = $1 AND bucket < $2";
        sqlx::query(sql).bind(tenant).bind(&bucket).execute(&mut *tx).await?;
        let sql = "UPDATE ledger_sizes SET bytes = (SELECT CAST(COALESCE(SUM(OCTET_LENGTH(record) + result_bytes), 0) AS BIGINT) \
                   FROM calls WHERE calls.tenant = $1 AND calls.id > $2 AND calls.id < $3) \
                   WHERE tenant = $1 AND bucket = $2";
        let update = sqlx::query(sql).bind(tenant).bind(&bucket).bind(format!("{bucket}{AFTER_ALL}"));
        update.execute(&mut *tx).await?;
        tx.commit().await
    }
}

async fn subtract(
    tx: &mut Transaction<'static, Any>,
    tenant: &str,
    bucket: &str,
    bytes: i64,
) -> Result<(), sqlx::Error> {
    let sql = "UPDATE ledger_sizes SET bytes = bytes - $1 WHERE tenant = $2 AND bucket = $3";
    sqlx::query(sql).bind(bytes).bind(tenant).bind(bucket).execute(&mut **tx).await?;
    Ok(())
}

/// Returns how many bytes to free: down to a bit below the limit, so that not every check has to free some.
fn excess(bytes: u64, limit: u64) -> u64 {
    if limit == 0 || bytes <= limit { 0 } else { bytes - (limit - limit / 16) }
}

fn bucket_of(id: &str) -> String {
    id.chars().take(BUCKET_DIGITS).collect()
}
