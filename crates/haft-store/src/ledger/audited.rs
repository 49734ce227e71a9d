//! The audit of calls: what is recorded about them, without arguments and results.

use futures_util::TryStreamExt as _;
use haft_core::audit::AuditEntry;
use haft_core::catalog::StoreError;
use haft_core::ledger::CallQuery;
use sqlx::Row as _;

use super::filter::Filter;
use super::record;
use crate::engine::failed_to;
use crate::ledger::Calls;

const READ: &str = "read the audit of calls";

impl Calls {
    /// Lists the audit records of calls, newest first. Only one record with its arguments and result is in memory at a
    /// time. The text of the query is ignored.
    pub async fn audited(&self, query: &CallQuery) -> Result<Vec<AuditEntry>, StoreError> {
        self.drain_for_list().await;
        self.read_audited(query).await.map_err(failed_to(READ))
    }

    /// Counts the calls that match a query, without its text.
    pub async fn count(&self, query: &CallQuery) -> Result<u64, StoreError> {
        let query = CallQuery { text: None, ..query.clone() };
        let counted = Filter::new(&query).select(&self.db, "SELECT COUNT(*) FROM calls", "").await;
        let total: i64 = counted
            .and_then(|rows| rows.first().map_or(Ok(0), |row| row.try_get(0)))
            .map_err(failed_to(READ))?;
        Ok(u64::try_from(total).unwrap_or_default())
    }
}

impl Calls {
    async fn read_audited(&self, query: &CallQuery) -> Result<Vec<AuditEntry>, sqlx::Error> {
        let mut filter = Filter::new(&CallQuery { text: None, ..query.clone() });
        filter.add_before(query.before);
        let end = format!("ORDER BY id DESC LIMIT {} OFFSET {}", query.limit, query.skip);
        let sql = filter.sql("SELECT record FROM calls", &end);
        let mut rows = filter.query(&sql).fetch(&self.db.engine.pool);
        let mut entries = Vec::new();
        while let Some(row) = rows.try_next().await? {
            // A record of a newer version may be unreadable; the others are still of use.
            match record::parse(row.try_get(0)?) {
                Ok(call) => entries.push(AuditEntry::of_call(&call)),
                Err(error) => tracing::error!(error = %error, "a recorded call cannot be read"),
            }
        }
        Ok(entries)
    }

    /// Moves the latest calls from the journal to the table. With a full disk, a list without them is better than none.
    pub(super) async fn drain_for_list(&self) {
        if let Err(error) = self.drain_journal().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the latest calls are missing in a list"
            );
        }
    }
}
