//! Removes old runs with their steps. Runs that answer in a chat stay as long as the chat, because the conversation
//! continues from their steps.

use haft_core::id::{CallId, ChatId};
use haft_core::name::TenantId;
use jiff::SignedDuration;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use crate::rows;
use crate::runs::Runs;
use crate::time::min_id_at;

/// How many runs are removed in one transaction: each may have thousands of steps.
const RUNS_PER_TRANSACTION: u64 = 100;

/// Ended runs before an id that answer in no chat.
pub(crate) const OLD_RUNS: &str = "final = 1 AND id < $1 \
    AND (chat_id IS NULL OR NOT EXISTS (SELECT 1 FROM chats WHERE chats.id = runs.chat_id))";
/// Deleted tenants that have runs: one lookup in the index per tenant.
pub(crate) const DELETED_TENANTS: &str = "SELECT id FROM tenants WHERE deleted_at IS NOT NULL \
    AND (SELECT 1 FROM runs WHERE runs.tenant = tenants.id LIMIT 1) = 1";

/// The runs of a chat, and those inside of them.
const OF_CHAT: &str = "WITH RECURSIVE tree (id) AS (SELECT id FROM runs WHERE tenant = $1 AND chat_id = $2 \
    UNION SELECT runs.id FROM runs JOIN tree ON runs.parent_run = tree.id)";

impl Runs {
    pub(crate) async fn reap(&self) -> Result<(), sqlx::Error> {
        let days = self.db.retention.run_days;
        if days > 0 {
            let oldest = min_id_at(self.db.now() - SignedDuration::from_hours(24 * i64::from(days)));
            self.delete_runs(OLD_RUNS, &oldest.to_string()).await?;
        }
        // Runs that were requested while their tenant was deleted.
        for row in sqlx::query(DELETED_TENANTS).fetch_all(&self.db.engine.pool).await? {
            self.delete_runs("tenant = $1", row.try_get(0)?).await?;
        }
        Ok(())
    }

    async fn delete_runs(&self, condition: &str, value: &str) -> Result<(), sqlx::Error> {
        let sql = delete_runs_sql(condition);
        loop {
            let _permit = self.write_permit().await;
            let delete = sqlx::query(AssertSqlSafe(sql.clone())).bind(value);
            if delete.execute(&self.db.engine.pool).await?.rows_affected() < RUNS_PER_TRANSACTION {
                return Ok(());
            }
        }
    }
}

/// Returns the statement that deletes a batch of runs.
pub(crate) fn delete_runs_sql(condition: &str) -> String {
    format!(
        "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE {condition} ORDER BY id LIMIT {RUNS_PER_TRANSACTION})"
    )
}

/// Deletes the runs of a chat, and those inside of them; returns the calls that they were waiting for. A node that runs
/// one of them loses its lease.
pub(crate) async fn delete_runs_of_chat(
    tx: &mut Transaction<'static, Any>,
    tenant: &TenantId,
    chat: ChatId,
) -> Result<Vec<CallId>, sqlx::Error> {
    let sql = format!("{OF_CHAT} SELECT call_id FROM run_waits WHERE run_id IN (SELECT id FROM tree)");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str()).bind(chat.to_string());
    let found = query.fetch_all(&mut **tx).await?;
    let calls = found.iter().map(|row| rows::parse_column(row, "call_id")).collect::<Result<_, _>>()?;
    let sql = format!("{OF_CHAT} DELETE FROM runs WHERE id IN (SELECT id FROM tree)");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(tenant.as_str()).bind(chat.to_string());
    query.execute(&mut **tx).await?;
    Ok(calls)
}
