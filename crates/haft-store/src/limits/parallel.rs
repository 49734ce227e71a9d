//! Calls at the same time, for all nodes: each node has a row with the number of its calls.

use sqlx::{AssertSqlSafe, Row as _};

use crate::limits::Limits;

/// The calls of a key, without those of nodes that have lost their lease.
const RUNNING: &str = "SELECT CAST(COALESCE(SUM(held), 0) AS BIGINT) FROM parallel_calls \
                       WHERE key = $1 AND node IN (SELECT id FROM nodes)";

impl Limits {
    pub(super) async fn acquire_parallel(&self, key: &str, max: u64) -> Result<bool, sqlx::Error> {
        let mut tx = self.db.engine.begin().await?;
        // Until the end of the transaction, so that no two nodes take the last place.
        sqlx::query("SELECT pg_advisory_xact_lock(HASHTEXTEXTENDED($1, 0))")
            .bind(key)
            .execute(&mut *tx)
            .await?;
        let running: i64 = sqlx::query(RUNNING).bind(key).fetch_one(&mut *tx).await?.try_get(0)?;
        if u64::try_from(running).unwrap_or_default() >= max {
            return Ok(false);
        }
        let sql = "INSERT INTO parallel_calls (key, node, held) VALUES ($1, $2, 1) \
                   ON CONFLICT (key, node) DO UPDATE SET held = parallel_calls.held + 1";
        sqlx::query(sql).bind(key).bind(&self.db.node).execute(&mut *tx).await?;
        tx.commit().await?;
        Ok(true)
    }

    pub(super) async fn release_parallel(&self, key: &str) -> Result<(), sqlx::Error> {
        let sql = "UPDATE parallel_calls SET held = held - 1 WHERE key = $1 AND node = $2 AND held > 0";
        sqlx::query(sql).bind(key).bind(&self.db.node).execute(&self.db.engine.pool).await?;
        Ok(())
    }

    pub(super) async fn running_parallel(&self, key: &str) -> Result<u64, sqlx::Error> {
        let running: i64 =
            sqlx::query(RUNNING).bind(key).fetch_one(&self.db.engine.pool).await?.try_get(0)?;
        Ok(u64::try_from(running).unwrap_or_default())
    }

    /// Removes the rows of nodes that are gone, and rows without calls.
    pub(super) async fn reap_parallel(&self) -> Result<(), sqlx::Error> {
        let sql = "DELETE FROM parallel_calls WHERE held <= 0 OR node NOT IN (SELECT id FROM nodes)";
        sqlx::query(AssertSqlSafe(sql)).execute(&self.db.engine.pool).await?;
        Ok(())
    }
}
