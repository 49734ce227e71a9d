//! The recent calls of a rate, for all nodes: one row per key, which a node locks while it draws calls.
//!
//! The database's clock counts, so that the clocks of the nodes do not matter.

use std::time::Duration;

use haft_core::limit::{CallRate, Draw, DrawRequest, RateStatus, UnusedCalls};
use sqlx::{Any, Row as _, Transaction};

use crate::limits::Limits;
use crate::rows;

/// The number of batches in a window. Batches that end within the same part of the period are joined, so that a row
/// stays small.
const BATCHES: i64 = 32;

/// The time of the database in microseconds.
const NOW: &str = "SELECT CAST(EXTRACT(EPOCH FROM CLOCK_TIMESTAMP()) * 1000000 AS BIGINT)";

/// Calls that were drawn: when their lease ends, in microseconds, and how many they are.
type Batch = (i64, u32);

impl Limits {
    pub(super) async fn draw(&self, key: &str, request: DrawRequest) -> Result<Draw, sqlx::Error> {
        let mut tx = self.db.engine.begin().await?;
        let mut window = lock_window(&mut tx, key).await?;
        if window.is_none() {
            let sql = "INSERT INTO rate_windows (key, batches, expires_at) VALUES ($1, '[]', 0) \
                       ON CONFLICT (key) DO NOTHING";
            sqlx::query(sql).bind(key).execute(&mut *tx).await?;
            window = lock_window(&mut tx, key).await?;
        }
        let (mut batches, now) = window.ok_or(sqlx::Error::RowNotFound)?;
        let DrawRequest { rate, calls, lifetime, unused } = request;
        if let Some(unused) = unused {
            give_back(&mut batches, unused);
        }
        let period = micros(rate.period);
        batches.retain(|(last, _)| last + period > now);
        let used = sum(&batches);
        let granted = calls.min(rate.calls.saturating_sub(used));
        let batch = now + micros(lifetime);
        if granted > 0 {
            add(&mut batches, (batch, granted), (period / BATCHES).max(1));
        }
        let expires_at = batches.iter().map(|(last, _)| last + period).max().unwrap_or(now);
        let text = serde_json::to_string(&batches).map_err(|error| sqlx::Error::Encode(error.into()))?;
        sqlx::query("UPDATE rate_windows SET batches = $1, expires_at = $2 WHERE key = $3")
            .bind(text)
            .bind(expires_at)
            .bind(key)
            .execute(&mut *tx)
            .await?;
        tx.commit().await?;
        let batch = batches.last().map_or(batch, |(last, _)| *last);
        Ok(Draw { granted, batch, status: status(&batches, rate, now) })
    }

    pub(super) async fn rate_status(&self, key: &str, rate: CallRate) -> Result<RateStatus, sqlx::Error> {
        let sql = format!("SELECT batches, ({NOW}) AS now FROM rate_windows WHERE key = $1");
        let found =
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(key).fetch_optional(&self.db.engine.pool).await?;
        let Some(row) = found else { return Ok(status(&[], rate, 0)) };
        let (mut batches, now): (Vec<Batch>, i64) =
            (rows::json_column(&row, "batches")?, row.try_get("now")?);
        batches.retain(|(last, _)| last + micros(rate.period) > now);
        Ok(status(&batches, rate, now))
    }

    pub(super) async fn reap_rates(&self) -> Result<(), sqlx::Error> {
        let sql = format!("DELETE FROM rate_windows WHERE expires_at < ({NOW})");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&self.db.engine.pool).await?;
        Ok(())
    }
}

/// Locks a window until the end of the transaction; returns its batches, and the time after the lock was acquired.
async fn lock_window(
    tx: &mut Transaction<'static, Any>,
    key: &str,
) -> Result<Option<(Vec<Batch>, i64)>, sqlx::Error> {
    let sql = "SELECT batches FROM rate_windows WHERE key = $1 FOR UPDATE";
    let Some(row) = sqlx::query(sql).bind(key).fetch_optional(&mut **tx).await? else { return Ok(None) };
    let now = sqlx::query(NOW).fetch_one(&mut **tx).await?.try_get(0)?;
    Ok(Some((rows::json_column(&row, "batches")?, now)))
}

fn micros(time: Duration) -> i64 {
    i64::try_from(time.as_micros()).unwrap_or(i64::MAX / 4)
}

fn sum(batches: &[Batch]) -> u32 {
    batches.iter().fold(0, |sum, (_, calls)| sum.saturating_add(*calls))
}

/// Adds a batch at the end, or to the last one if both end in the same part of the period: the later end counts for both.
fn add(batches: &mut Vec<Batch>, (last, calls): Batch, resolution: i64) {
    match batches.last_mut() {
        Some(latest) if last / resolution == latest.0 / resolution => {
            *latest = (latest.0.max(last), latest.1.saturating_add(calls));
        }
        _ => batches.push((last, calls)),
    }
}

/// Removes calls that were drawn and not made. A batch may have been joined with a later one.
fn give_back(batches: &mut Vec<Batch>, unused: UnusedCalls) {
    if let Some(batch) = batches.iter_mut().find(|(last, _)| *last >= unused.batch) {
        batch.1 = batch.1.saturating_sub(unused.calls);
    }
    batches.retain(|(_, calls)| *calls > 0);
}

fn status(batches: &[Batch], rate: CallRate, now: i64) -> RateStatus {
    let reset = batches.first().map_or(0, |(last, _)| last + micros(rate.period) - now);
    RateStatus {
        limit: rate.calls,
        remaining: rate.calls.saturating_sub(sum(batches)),
        reset: Duration::from_micros(u64::try_from(reset).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_that_end_together_are_joined() {
        let mut batches = Vec::new();
        for last in [0, 5, 9, 10, 30] {
            add(&mut batches, (last, 1), 10);
        }
        assert_eq!(batches, [(9, 3), (10, 1), (30, 1)]);
    }

    #[test]
    fn unused_calls_do_not_count() {
        let mut batches = vec![(10, 4), (20, 2)];
        give_back(&mut batches, UnusedCalls { batch: 10, calls: 3 });
        give_back(&mut batches, UnusedCalls { batch: 15, calls: 2 });
        give_back(&mut batches, UnusedCalls { batch: 99, calls: 2 });
        assert_eq!(batches, [(10, 1)]);
    }
}
