//! The [`Ledger`] of the store.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use haft_core::BoxFuture;
use haft_core::audit::AuditDecision;
use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::ledger::{CallPage, CallQuery, Ledger, MAX_SEARCHED_CALLS, Reservation};
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use jiff::SignedDuration;
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};
use tokio::sync::{Mutex, Notify};

use super::LedgerBackend;
use super::approvals::CallApprovals;
use super::ended::EndedCalls;
use super::filter::Filter;
use super::health::LedgerHealth;
use super::record::{self, CallRow};
use super::unsaved::UnsavedCalls;
use crate::database::Database;
use crate::engine::failed_to;
use crate::ledger::usage::LedgerUsage;
use crate::outbox::insert_new;
use crate::rows;
use crate::time::min_id_at;

const READ: &str = "read recorded calls";
const SELECT_RECORD: &str = "SELECT id, record FROM calls";
/// How many records a search for a text reads at once; a record may have several megabytes.
const BATCH: usize = 50;

/// The recorded calls and the queue.
#[derive(Clone)]
pub struct Calls {
    pub(crate) db: Arc<Database>,
    pub(crate) state: Arc<CallsState>,
}

/// The state that the tasks of the ledger share.
pub(crate) struct CallsState {
    pub(crate) backend: LedgerBackend,
    pub(crate) usage: Arc<LedgerUsage>,
    pub(crate) health: LedgerHealth,
    /// Whether recovering the calls of dead processes waits for disk space.
    pub(crate) recovery_due: AtomicBool,
    pub(crate) unsaved: UnsavedCalls,
    /// Signals that there may be calls in the queue.
    pub(crate) queue_changed: Notify,
    /// The tenant whose queued call was claimed last: the next claim begins after it.
    pub(super) queue_cursor: Mutex<String>,
    pub(crate) ended: Arc<EndedCalls>,
    pub(crate) approvals: CallApprovals,
    /// How many days calls are kept; 0 keeps them.
    pub(super) keep_days: u32,
}

impl Calls {
    pub(crate) fn new(
        db: &Arc<Database>,
        backend: LedgerBackend,
        usage: &Arc<LedgerUsage>,
        keep_days: u32,
    ) -> Self {
        let ended = Arc::new(EndedCalls::default());
        let state = CallsState {
            backend,
            usage: Arc::clone(usage),
            health: LedgerHealth::default(),
            recovery_due: AtomicBool::new(false),
            unsaved: UnsavedCalls::default(),
            queue_changed: Notify::new(),
            queue_cursor: Mutex::default(),
            approvals: CallApprovals::new(db, &ended),
            ended,
            keep_days,
        };
        Self { db: Arc::clone(db), state: Arc::new(state) }
    }
}

impl Ledger for Calls {
    fn is_failing(&self) -> bool {
        self.state.health.is_failing()
    }

    fn probe(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.probe_if_failing())
    }

    fn record(&self, call: Arc<CallRecord>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async move {
            let result = self.append_under_claim(CallRow::new(&call)?).await;
            self.state.unsaved.keep(&call, &result);
            self.state.health.observe(result)?;
            // The run that waits for the call looks at the table. If that fails, it sees the end a little later.
            if is_waited_for(&call) {
                drop(self.drain_journal().await);
            }
            self.report_call(&call);
            Ok(())
        })
    }

    fn reserve(&self, call: CallRecord) -> BoxFuture<'_, Result<Reservation, StoreError>> {
        let this = self.clone();
        let work = async move { this.state.health.observe(this.reserve_key(call).await) };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn release(&self, call: CallRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        let this = self.clone();
        let work = async move { this.state.health.observe(this.release_key(call).await) };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn call<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: CallId,
    ) -> BoxFuture<'a, Result<Option<CallRecord>, StoreError>> {
        Box::pin(self.find(tenant, id))
    }

    fn calls(&self, query: CallQuery) -> BoxFuture<'_, Result<CallPage, StoreError>> {
        Box::pin(self.list(query))
    }
}

/// Tells whether a run of an agent waits for the end of a call: the call was approved, so the run had to wait.
fn is_waited_for(call: &CallRecord) -> bool {
    let was_approved = call.decision.as_ref().is_some_and(|decision| decision.approval_id.is_some());
    call.status.is_final() && was_approved && call.invocation.principal.agent.is_some()
}

impl Calls {
    pub(crate) async fn append(&self, row: CallRow) -> Result<(), StoreError> {
        match &self.state.backend {
            LedgerBackend::Journal(journal) => journal.append(row).await,
            LedgerBackend::Database(group_commit) => group_commit.commit(row).await,
        }
    }

    /// Appends a row, unless it belongs to a claim that is lost. The journal does not know: it is asked before, and again
    /// when the row is moved to the table.
    pub(crate) async fn append_under_claim(&self, row: CallRow) -> Result<(), StoreError> {
        if row.fence != 0 && matches!(self.state.backend, LedgerBackend::Journal(_)) {
            let sql = "SELECT 1 FROM calls WHERE tenant = $1 AND id = $2 AND fence = $3";
            let held = sqlx::query(sql).bind(row.tenant.as_str()).bind(row.id.to_string()).bind(row.fence);
            match held.fetch_optional(&self.db.engine.pool).await {
                Ok(None) => return Err(StoreError::ClaimLost),
                Ok(Some(_)) => {}
                // The journal takes the row although the database is away.
                Err(error) => tracing::warn!(call = %row.id, %error, "cannot read the claim of a call"),
            }
        }
        self.append(row).await
    }

    fn pending(&self, id: CallId) -> Option<CallRow> {
        match &self.state.backend {
            LedgerBackend::Journal(journal) => journal.find(id),
            LedgerBackend::Database(_) => None,
        }
    }

    /// Bypasses the journal: only the unique constraint decides between processes.
    async fn reserve_key(&self, call: CallRecord) -> Result<Reservation, StoreError> {
        if call.invocation.idempotency_key.is_none() {
            self.append(CallRow::new(&call)?).await?;
            return Ok(Reservation::Taken);
        }
        let action = "reserve an idempotency key";
        let row = CallRow::new(&call)?;
        let mut tx = self.db.engine.begin().await.map_err(failed_to(action))?;
        let existing =
            self.insert_waiting(&mut tx, &self.db.node, &call, &row).await.map_err(failed_to(action))?;
        tx.commit().await.map_err(failed_to(action))?;
        match existing {
            None => {
                self.state.usage.count(std::slice::from_ref(&row)).await;
                Ok(Reservation::Taken)
            }
            Some(record) => Ok(Reservation::Existing(Box::new(self.newest(&record)?))),
        }
    }

    /// Stores a call that has not ended, unless its idempotency key is in use: then returns the record of the call that
    /// has it. A key that is older than its retention is free again.
    pub(crate) async fn insert_waiting(
        &self,
        tx: &mut Transaction<'static, Any>,
        node: &str,
        call: &CallRecord,
        row: &CallRow,
    ) -> Result<Option<String>, sqlx::Error> {
        let Some((id, record)) = insert_unless_known(tx, node, call, row).await? else { return Ok(None) };
        match self.oldest_key() {
            Some(oldest) if id < oldest => {}
            _ => return Ok(Some(record)),
        }
        let sql = "UPDATE calls SET idempotency_key = NULL WHERE tenant = $1 AND id = $2 AND final = 1";
        let freed = sqlx::query(sql).bind(row.tenant.as_str()).bind(id).execute(&mut **tx).await?;
        if freed.rows_affected() == 0 {
            return Ok(Some(record));
        }
        Ok(insert_unless_known(tx, node, call, row).await?.map(|(_, record)| record))
    }

    /// Returns the smallest id of a call whose idempotency key is kept, if keys are kept for a limited time.
    pub(crate) fn oldest_key(&self) -> Option<String> {
        let kept = SignedDuration::try_from(self.db.retention.idempotency_keys)
            .ok()
            .filter(|time| !time.is_zero())?;
        Some(min_id_at(self.db.now().checked_sub(kept).ok()?).to_string())
    }

    /// Frees the idempotency keys that are older than their retention.
    pub(crate) async fn reap_idempotency_keys(&self) -> Result<u64, sqlx::Error> {
        let Some(oldest) = self.oldest_key() else { return Ok(0) };
        let sql = "UPDATE calls SET idempotency_key = NULL WHERE idempotency_key IS NOT NULL AND id < $1 AND final = 1";
        Ok(sqlx::query(sql).bind(oldest).execute(&self.db.engine.pool).await?.rows_affected())
    }

    /// Returns the newest state of a stored call: its end may still be in the journal.
    pub(crate) fn newest(&self, record: &str) -> Result<CallRecord, StoreError> {
        let stored = record::parse(record)?;
        let newest = self.pending(stored.id()).map(|row| row.call()).transpose()?;
        Ok(newest.unwrap_or(stored))
    }

    async fn release_key(&self, call: CallRecord) -> Result<(), StoreError> {
        let action = "release an idempotency key";
        let row = CallRow::new(&call)?;
        let sql = "UPDATE calls SET status = $1, final = 1, error_code = $2, idempotency_key = NULL, record = $3, \
                   decision = $4 WHERE tenant = $5 AND id = $6 AND final = 0 AND fence = $7";
        let mut tx = self.db.engine.begin().await.map_err(failed_to(action))?;
        sqlx::query(sql)
            .bind(row.status.as_str())
            .bind(row.error_code.map(ErrorCode::as_str))
            .bind(&*row.record)
            .bind(row.decision.map(AuditDecision::as_str))
            .bind(row.tenant.as_str())
            .bind(row.id.to_string())
            .bind(row.fence)
            .execute(&mut *tx)
            .await
            .map_err(failed_to(action))?;
        insert_new(&mut tx, &self.db.outbox.of_call(&call)).await.map_err(failed_to(action))?;
        tx.commit().await.map_err(failed_to(action))?;
        self.db.outbox.signal();
        self.report_call(&call);
        Ok(())
    }

    pub(crate) async fn find(&self, tenant: &TenantId, id: CallId) -> Result<Option<CallRecord>, StoreError> {
        if let Some(row) = self.pending(id) {
            return if row.tenant == *tenant { row.call().map(Some) } else { Ok(None) };
        }
        let found = sqlx::query(record::select("WHERE tenant = $1 AND id = $2"))
            .bind(tenant.as_str())
            .bind(id.to_string())
            .fetch_optional(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        found.map(|row| record::parse(row.try_get(0).map_err(failed_to(READ))?)).transpose()
    }

    async fn list(&self, query: CallQuery) -> Result<CallPage, StoreError> {
        // The journal is drained first, so that only the table has to be filtered, ordered and counted.
        self.drain_for_list().await;
        match &query.text {
            None => self.matching_calls(&query).await,
            Some(text) => self.calls_with_text(&query, text).await,
        }
        .map_err(failed_to(READ))?
        .into_page()
    }

    async fn matching_calls(&self, query: &CallQuery) -> Result<FoundRecords, sqlx::Error> {
        let mut filter = Filter::new(query);
        let counted = filter.select(&self.db, "SELECT COUNT(*) FROM calls", "").await?;
        let total: i64 = counted.first().map_or(Ok(0), |row| row.try_get(0))?;
        filter.add_before(query.before);
        let end = format!("ORDER BY id DESC LIMIT {} OFFSET {}", query.limit, query.skip);
        let rows = filter.select(&self.db, SELECT_RECORD, &end).await?;
        let records = rows.iter().map(|row| row.try_get(1)).collect::<Result<_, _>>()?;
        let total = u64::try_from(total).unwrap_or_default();
        Ok(FoundRecords { records, total, searched_to: None })
    }

    /// The database preselects records that contain the text anywhere, also in a key; these are then parsed and checked.
    async fn calls_with_text(&self, query: &CallQuery, text: &str) -> Result<FoundRecords, sqlx::Error> {
        let horizon = self.search_horizon(query).await?;
        let mut found = FoundRecords { searched_to: horizon, ..FoundRecords::default() };
        let (mut last, mut skipped) = (query.before, 0);
        loop {
            let mut filter = Filter::new(query);
            filter.add_before(last);
            filter.add_from(horizon);
            let rows =
                filter.select(&self.db, SELECT_RECORD, &format!("ORDER BY id DESC LIMIT {BATCH}")).await?;
            for row in &rows {
                last = Some(rows::parse_column(row, "id")?);
                let record: &str = row.try_get("record")?;
                if !record::parse(record).is_ok_and(|call| call.contains_text(text)) {
                    continue;
                }
                found.total += 1;
                if skipped < query.skip {
                    skipped += 1;
                } else if u32::try_from(found.records.len()).is_ok_and(|length| length < query.limit) {
                    found.records.push(record.to_owned());
                }
            }
            if rows.len() < BATCH {
                return Ok(found);
            }
        }
    }

    /// Returns the oldest call that a search for a text looks at; `None` if it looks at all.
    async fn search_horizon(&self, query: &CallQuery) -> Result<Option<CallId>, sqlx::Error> {
        let until = query.until.map(|at| min_id_at(at).to_string());
        let start = query.before.map(|id| id.to_string()).into_iter().chain(until).min();
        let found = sqlx::query(AssertSqlSafe(horizon_sql()))
            .bind(query.tenant.as_str())
            // Every id is before it.
            .bind(start.unwrap_or_else(|| "g".to_owned()))
            .fetch_optional(&self.db.engine.pool)
            .await?;
        let horizon: Option<CallId> = found.map(|row| rows::parse_column(&row, "id")).transpose()?;
        // What is older than the oldest requested time needs no further page.
        let oldest = query.since.map(|at| min_id_at(at).to_string()).unwrap_or_default();
        Ok(horizon.filter(|id| id.to_string() > oldest))
    }
}

/// Returns the query for the last of the calls of a tenant (`$1`) before an id (`$2`) that are searched at once.
pub(crate) fn horizon_sql() -> String {
    let skip = MAX_SEARCHED_CALLS - 1;
    format!("SELECT id FROM calls WHERE tenant = $1 AND id < $2 ORDER BY id DESC LIMIT 1 OFFSET {skip}")
}

/// Stores a call, unless its idempotency key is in use: then returns the id and the record of the call that has it.
async fn insert_unless_known(
    tx: &mut Transaction<'static, Any>,
    node: &str,
    call: &CallRecord,
    row: &CallRow,
) -> Result<Option<(String, String)>, sqlx::Error> {
    let key = call.invocation.idempotency_key.as_deref();
    let done = sqlx::query(
        "INSERT INTO calls (id, tenant, tool_id, status, final, node, idempotency_key, caller, principal, surface, \
         parent_id, error_code, chat_id, rule, decision, record) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
         ON CONFLICT (tenant, principal, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING",
    )
    .bind(row.id.to_string())
    .bind(row.tenant.as_str())
    .bind(row.tool_id.to_string())
    .bind(row.status.as_str())
    .bind(i64::from(row.status.is_final()))
    .bind(node)
    .bind(key)
    .bind(&*row.caller)
    .bind(&*row.principal)
    .bind(&*row.surface)
    .bind(row.parent_id.map(|id| id.to_string()))
    .bind(row.error_code.map(ErrorCode::as_str))
    .bind(row.chat_id.as_deref())
    .bind(row.rule.as_deref())
    .bind(row.decision.map(AuditDecision::as_str))
    .bind(&*row.record)
    .execute(&mut **tx)
    .await?;
    if done.rows_affected() == 1 {
        return Ok(None);
    }
    let sql = "SELECT id, record FROM calls WHERE tenant = $1 AND principal = $2 AND idempotency_key = $3";
    let found = sqlx::query(sql)
        .bind(row.tenant.as_str())
        .bind(&*row.principal)
        .bind(key)
        .fetch_one(&mut **tx)
        .await?;
    Ok(Some((found.try_get(0)?, found.try_get(1)?)))
}

/// The records of a page, as stored.
#[derive(Default)]
struct FoundRecords {
    records: Vec<String>,
    total: u64,
    searched_to: Option<CallId>,
}

impl FoundRecords {
    fn into_page(self) -> Result<CallPage, StoreError> {
        let calls = self.records.iter().map(|text| record::parse(text)).collect::<Result<_, StoreError>>()?;
        Ok(CallPage { calls, total: self.total, searched_to: self.searched_to })
    }
}
