//! The [`Ledger`] of the store.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::ledger::{CallPage, CallQuery, Ledger, Reservation};
use haft_core::name::TenantId;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row as _};

use super::LedgerBackend;
use super::record::{self, CallRow};
use crate::engine::failed_to;
use crate::store::{Inner, Store};

const READ: &str = "read recorded calls";

impl Ledger for Store {
    fn is_failing(&self) -> bool {
        self.inner.health.is_failing()
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(Arc::clone(&self.inner).probe())
    }

    fn record(&self, call: Arc<CallRecord>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move { self.inner.health.observe(self.inner.append(CallRow::new(&call)?).await) })
    }

    fn reserve(&self, call: CallRecord) -> BoxFuture<'_, Result<Reservation, StoreError>> {
        Box::pin(self.run(|inner| async move { inner.health.observe(inner.reserve(call).await) }))
    }

    fn call<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: CallId,
    ) -> BoxFuture<'a, Result<Option<CallRecord>, StoreError>> {
        Box::pin(self.inner.call(tenant, id))
    }

    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<CallPage, StoreError>> {
        Box::pin(self.inner.calls(query))
    }
}

impl Inner {
    async fn append(&self, row: CallRow) -> Result<(), StoreError> {
        match &self.ledger {
            LedgerBackend::Journal(journal) => journal.append(row).await,
            LedgerBackend::Database(group_commit) => group_commit.commit(row).await,
        }
    }

    fn pending(&self, id: CallId) -> Option<CallRow> {
        match &self.ledger {
            LedgerBackend::Journal(journal) => journal.find(id),
            LedgerBackend::Database(_) => None,
        }
    }

    /// Bypasses the journal: only the unique constraint decides between processes.
    async fn reserve(&self, call: CallRecord) -> Result<Reservation, StoreError> {
        let action = "reserve an idempotency key";
        let row = CallRow::new(&call)?;
        let Some(key) = &call.idempotency_key else {
            self.append(row).await?;
            return Ok(Reservation::Taken);
        };
        let done = sqlx::query(
            "INSERT INTO calls (id, tenant, tool_id, status, final, node, idempotency_key, record) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (tenant, idempotency_key) \
             WHERE idempotency_key IS NOT NULL DO NOTHING",
        )
        .bind(row.id.to_string())
        .bind(row.tenant.as_str())
        .bind(row.tool_id.to_string())
        .bind(row.status.as_str())
        .bind(i64::from(row.status.is_final()))
        .bind(&self.node)
        .bind(key)
        .bind(&*row.record)
        .execute(&self.engine.pool)
        .await
        .map_err(failed_to(action))?;
        if done.rows_affected() == 1 {
            self.usage.count(std::slice::from_ref(&row)).await;
            return Ok(Reservation::Taken);
        }
        let found = sqlx::query(record::select("WHERE tenant = $1 AND idempotency_key = $2"))
            .bind(row.tenant.as_str())
            .bind(key)
            .fetch_one(&self.engine.pool)
            .await
            .map_err(failed_to(action))?;
        let stored = record::parse(found.try_get(0).map_err(failed_to(action))?)?;
        let newest = self.pending(stored.id).map(|row| row.call()).transpose()?;
        Ok(Reservation::Existing(Box::new(newest.unwrap_or(stored))))
    }

    async fn call(&self, tenant: &TenantId, id: CallId) -> Result<Option<CallRecord>, StoreError> {
        if let Some(row) = self.pending(id) {
            return if row.tenant == *tenant { row.call().map(Some) } else { Ok(None) };
        }
        let found = sqlx::query(record::select("WHERE tenant = $1 AND id = $2"))
            .bind(tenant.as_str())
            .bind(id.to_string())
            .fetch_optional(&self.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.map(|row| record::parse(row.try_get(0).map_err(failed_to(READ))?)).transpose()
    }

    async fn calls(self: &Arc<Self>, query: CallQuery) -> Result<CallPage, StoreError> {
        // The journal is drained first, so that only the table has to be filtered, ordered and counted. With a full disk,
        // a list without the latest calls is better than none.
        if let Err(error) = self.drain_journal().await {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "the latest calls are missing in a list"
            );
        }
        let (condition, values) = filter(&query);
        let mut count = sqlx::query(AssertSqlSafe(format!("SELECT COUNT(*) FROM calls WHERE {condition}")));
        for value in &values {
            count = count.bind(value);
        }
        let row = count.fetch_one(&self.engine.pool).await.map_err(failed_to(READ))?;
        let total: i64 = row.try_get(0).map_err(failed_to(READ))?;
        let found = self.page(&query, condition, values).await.map_err(failed_to(READ))?;
        let calls = found
            .iter()
            .map(|row| record::parse(row.try_get(0).map_err(failed_to(READ))?))
            .collect::<Result<_, StoreError>>()?;
        Ok(CallPage { calls, total: u64::try_from(total).unwrap_or_default() })
    }

    async fn page(
        &self,
        query: &CallQuery,
        mut condition: String,
        mut values: Vec<String>,
    ) -> Result<Vec<AnyRow>, sqlx::Error> {
        if let Some(before) = query.before {
            values.push(before.to_string());
            let _ = write!(condition, " AND id < ${}", values.len());
        }
        let (limit, skip) = (query.limit, query.skip);
        let sql = record::select(&format!("WHERE {condition} ORDER BY id DESC LIMIT {limit} OFFSET {skip}"));
        let mut select = sqlx::query(sql);
        for value in &values {
            select = select.bind(value);
        }
        select.fetch_all(&self.engine.pool).await
    }
}

/// Returns the condition of a query without its paging, and the values to bind.
fn filter(query: &CallQuery) -> (String, Vec<String>) {
    let mut values = vec![query.tenant.to_string()];
    let mut condition = String::from("tenant = $1");
    if let Some(tool) = query.tool_id {
        values.push(tool.to_string());
        let _ = write!(condition, " AND tool_id = ${}", values.len());
    }
    if let Some(status) = query.status {
        values.push(status.as_str().to_owned());
        let _ = write!(condition, " AND status = ${}", values.len());
    }
    (condition, values)
}
