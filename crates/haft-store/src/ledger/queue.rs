//! The durable queue: calls with the status `pending`, which belong to no node until one claims them.

use std::time::Duration;

use haft_core::audit::AuditDecision;
use haft_core::call::{CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::executor::CallEvent;
use haft_core::id::CallId;
use haft_core::ledger::{CallQueue, Cancellation, ClaimLimits, Enqueued, NumberedEvent};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::{BoxFuture, Timestamp};
use serde::{Deserialize, Serialize};
use sqlx::{Any, AssertSqlSafe, Row as _, Transaction};

use super::record::{self, CallRow};
use crate::claims::{self, CALLS, Claim, holds};
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::notification::ChangeSet;
use crate::outbox::insert_new;
use crate::rows;

/// How long a node waits for a notification before it looks at the queue.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// The number of events of one call that are stored for readers on other nodes.
const MAX_EVENTS: u64 = 10_000;

/// How many tenants with calls in the queue are read at once.
const TENANTS_PER_QUERY: usize = 100;

const ENQUEUE: &str = "put a call into the queue";
const CLAIM: &str = "take calls from the queue";
const EVENTS: &str = "store the events of a call";
const CANCEL: &str = "cancel a call";

impl CallQueue for Calls {
    fn enqueue(&self, call: CallRecord, limit: u64) -> BoxFuture<'_, Result<Enqueued, StoreError>> {
        let this = self.clone();
        let work = async move { this.state.health.observe(this.add_to_queue(call, limit).await) };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn claim(&self, limits: ClaimLimits) -> BoxFuture<'_, Result<Vec<CallRecord>, StoreError>> {
        let this = self.clone();
        let work = async move { this.claim_queued(&limits).await.map_err(failed_to(CLAIM)) };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn requeue(&self, call: CallRecord, not_before: Timestamp) -> BoxFuture<'_, Result<(), StoreError>> {
        let this = self.clone();
        let work = async move { this.return_to_queue(call, not_before).await };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let _ = tokio::time::timeout(POLL_INTERVAL, self.state.queue_changed.notified()).await;
        })
    }

    fn cancel<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: CallId,
    ) -> BoxFuture<'a, Result<Option<Cancellation>, StoreError>> {
        let tenant = tenant.clone();
        let this = self.clone();
        let work = async move { this.cancel_call(&tenant, id).await };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn cancellations(&self) -> BoxFuture<'_, Result<Vec<CallId>, StoreError>> {
        Box::pin(async {
            let sql = "SELECT id FROM calls WHERE cancel_requested = 1 AND final = 0 AND node = $1";
            let found = sqlx::query(sql).bind(&self.db.node).fetch_all(&self.db.engine.pool).await;
            let found = found.map_err(failed_to(CANCEL))?;
            found
                .iter()
                .map(|row| rows::parse_column(row, "id"))
                .collect::<Result<_, _>>()
                .map_err(failed_to(CANCEL))
        })
    }

    fn append_events(&self, id: CallId, events: Vec<NumberedEvent>) -> BoxFuture<'_, Result<(), StoreError>> {
        let this = self.clone();
        let work = async move { this.insert_events(id, events).await.map_err(failed_to(EVENTS)) };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn events(&self, id: CallId, after: u64) -> BoxFuture<'_, Result<Vec<NumberedEvent>, StoreError>> {
        Box::pin(
            async move { self.read_events(id, after).await.map_err(failed_to("read the events of a call")) },
        )
    }
}

impl Calls {
    async fn add_to_queue(&self, call: CallRecord, limit: u64) -> Result<Enqueued, StoreError> {
        let row = CallRow::new(&call)?;
        let mut tx = self.db.engine.begin().await.map_err(failed_to(ENQUEUE))?;
        let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM calls WHERE tenant = $1 AND status = 'pending' LIMIT $2) AS waiting";
        let waiting: i64 = sqlx::query(sql)
            .bind(row.tenant.as_str())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_one(&mut *tx)
            .await
            .and_then(|row| row.try_get(0))
            .map_err(failed_to(ENQUEUE))?;
        if u64::try_from(waiting).unwrap_or_default() >= limit {
            return Ok(Enqueued::Full(limit));
        }
        let existing = self.insert_waiting(&mut tx, "", &call, &row).await.map_err(failed_to(ENQUEUE))?;
        if let Some(record) = existing {
            return Ok(Enqueued::Existing(Box::new(self.newest(&record)?)));
        }
        self.announce_queue(&mut tx).await.map_err(failed_to(ENQUEUE))?;
        tx.commit().await.map_err(failed_to(ENQUEUE))?;
        self.state.queue_changed.notify_one();
        self.state.usage.count(std::slice::from_ref(&row)).await;
        self.report_call(&call);
        Ok(Enqueued::Queued)
    }

    /// Tells the other nodes that there may be calls in the queue.
    pub(crate) async fn announce_queue(&self, tx: &mut Transaction<'static, Any>) -> Result<(), sqlx::Error> {
        self.db.engine.notify(tx, &self.db.node, &ChangeSet::queue()).await
    }

    /// Takes calls in turn from each tenant that has some, so that a tenant with many does not hold up the others.
    async fn claim_queued(&self, limits: &ClaimLimits) -> Result<Vec<CallRecord>, sqlx::Error> {
        let mut cursor = self.state.queue_cursor.lock().await;
        let now = self.db.now().as_microsecond();
        let tenants = self.waiting_tenants(&cursor, limits, now).await?;
        if tenants.is_empty() {
            return Ok(Vec::new());
        }
        let share = limits.max.div_ceil(tenants.len());
        let mut claimed = Vec::new();
        let mut tx = self.db.engine.begin().await?;
        for tenant in tenants {
            let wanted = share.min(limits.max - claimed.len()).min(limits.room_for(&tenant));
            if wanted == 0 {
                break;
            }
            claimed.extend(self.claim_of(&mut tx, &tenant, wanted, now).await?);
            *cursor = tenant;
        }
        tx.commit().await?;
        for call in &claimed {
            self.report_call(call);
        }
        Ok(claimed)
    }

    /// Reports the new state of a call, after it is stored.
    pub(crate) fn report_call(&self, call: &CallRecord) {
        if call.status.is_final() && call.invocation.principal.agent.is_some() {
            self.state.ended.add([call.id()]);
        }
        if self.db.sink.has_followers() {
            self.db.sink.call_changed(call);
        }
    }

    /// Returns tenants with calls that are due, beginning after the one that was served last.
    async fn waiting_tenants(
        &self,
        cursor: &str,
        limits: &ClaimLimits,
        now: i64,
    ) -> Result<Vec<String>, sqlx::Error> {
        let mut tenants = Vec::new();
        // From the cursor to the last tenant, then from the first to the cursor.
        let passes: &[(&str, &str)] =
            if cursor.is_empty() { &[("", "")] } else { &[(cursor, ""), ("", cursor)] };
        for (start, until) in passes {
            let mut after = (*start).to_owned();
            loop {
                let found = self.tenants_with_due_calls(&after, until, now).await?;
                let is_last = found.len() < TENANTS_PER_QUERY;
                for tenant in found {
                    after.clone_from(&tenant);
                    if limits.room_for(&tenant) > 0 {
                        tenants.push(tenant);
                    }
                    if tenants.len() >= limits.max {
                        return Ok(tenants);
                    }
                }
                if is_last {
                    break;
                }
            }
        }
        Ok(tenants)
    }

    /// Returns tenants after one, and up to another unless that is empty, that have calls that are due, by one lookup in
    /// the index per tenant.
    async fn tenants_with_due_calls(
        &self,
        after: &str,
        until: &str,
        now: i64,
    ) -> Result<Vec<String>, sqlx::Error> {
        let found = sqlx::query(AssertSqlSafe(due_tenants())).bind(after).bind(until).bind(now);
        found.fetch_all(&self.db.engine.pool).await?.iter().map(|row| row.try_get(0)).collect()
    }

    async fn claim_of(
        &self,
        tx: &mut Transaction<'static, Any>,
        tenant: &str,
        wanted: usize,
        now: i64,
    ) -> Result<Vec<CallRecord>, sqlx::Error> {
        let sql = format!(
            "SELECT id, record FROM calls WHERE status = 'pending' AND tenant = $1 AND not_before <= $2 \
             ORDER BY id LIMIT {wanted} {}",
            self.db.engine.skip_locked()
        );
        let found = sqlx::query(AssertSqlSafe(sql)).bind(tenant).bind(now).fetch_all(&mut **tx).await?;
        let mut claimed = Vec::with_capacity(found.len());
        for row in &found {
            let (id, text): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
            let Ok(mut call) = record::parse(text) else {
                tracing::error!(call = id, "a queued call cannot be read");
                continue;
            };
            call.status = CallStatus::Running;
            let Ok(stored) = CallRow::new(&call) else { continue };
            let sql = CALLS
                .claim(", status = 'running', record = $2", "tenant = $3 AND id = $4 AND status = 'pending'");
            let claim = sqlx::query(sql).bind(&self.db.node).bind(&*stored.record).bind(tenant).bind(id);
            let Some(row) = claim.fetch_optional(&mut **tx).await? else { continue };
            call.invocation.fence = row.try_get(0)?;
            claimed.push(call);
        }
        Ok(claimed)
    }

    async fn return_to_queue(&self, mut call: CallRecord, not_before: Timestamp) -> Result<(), StoreError> {
        call.status = CallStatus::Pending;
        let row = CallRow::new(&call)?;
        let sql = AssertSqlSafe(format!(
            "UPDATE calls SET status = 'pending', node = '', not_before = $1, record = $2 \
             WHERE tenant = $3 AND id = $4 AND final = 0 AND {}",
            holds(5)
        ));
        let claim = Claim::new(&self.db.node, row.fence);
        let query = sqlx::query(sql)
            .bind(not_before.as_microsecond())
            .bind(&*row.record)
            .bind(row.tenant.as_str())
            .bind(row.id.to_string());
        let done = claim.bind(query).execute(&self.db.engine.pool).await;
        claims::written(&done.map_err(failed_to(ENQUEUE))?)
    }

    pub(crate) async fn cancel_call(
        &self,
        tenant: &TenantId,
        id: CallId,
    ) -> Result<Option<Cancellation>, StoreError> {
        // The end of the call may still be in the journal.
        self.drain_journal().await?;
        let mut tx = self.db.engine.begin_change().await.map_err(failed_to(CANCEL))?;
        let sql = AssertSqlSafe(format!(
            "SELECT record FROM calls WHERE tenant = $1 AND id = $2 {}",
            self.db.engine.row_lock()
        ));
        let found =
            sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string()).fetch_optional(&mut *tx).await;
        let Some(found) = found.map_err(failed_to(CANCEL))? else { return Ok(None) };
        let mut call = record::parse(found.try_get(0).map_err(failed_to(CANCEL))?)?;
        if call.status.is_final() {
            return Ok(Some(Cancellation::Ended(call.status)));
        }
        if call.status == CallStatus::Running {
            let sql = "UPDATE calls SET cancel_requested = 1 WHERE tenant = $1 AND id = $2";
            let request = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
            request.execute(&mut *tx).await.map_err(failed_to(CANCEL))?;
            tx.commit().await.map_err(failed_to(CANCEL))?;
            return Ok(Some(Cancellation::Requested));
        }
        let error = CallError::new(ErrorCode::Cancelled, "the call was cancelled before it ran");
        call.finish(Err(error), self.db.now(), 0.0);
        store_state(&mut tx, &call).await?;
        let approval = self.state.approvals.close(&mut tx, id).await?;
        match &approval {
            Some(approval) => self.state.approvals.announce(&mut tx, approval, &call).await,
            None => insert_new(&mut tx, &self.db.outbox.of_call(&call)).await,
        }
        .map_err(failed_to(CANCEL))?;
        tx.commit().await.map_err(failed_to(CANCEL))?;
        if let Some(approval) = &approval {
            self.state.approvals.report(approval, &call);
        } else {
            self.db.outbox.signal();
            self.report_call(&call);
        }
        Ok(Some(Cancellation::Cancelled))
    }

    async fn insert_events(&self, id: CallId, events: Vec<NumberedEvent>) -> Result<(), sqlx::Error> {
        let mut tx = self.db.engine.begin().await?;
        for NumberedEvent { number, event } in events {
            if number > MAX_EVENTS {
                break;
            }
            let Ok(event) = serde_json::to_string(&StoredEvent::from(event)) else { continue };
            let sql = "INSERT INTO call_events (call_id, number, event) VALUES ($1, $2, $3) \
                       ON CONFLICT (call_id, number) DO NOTHING";
            sqlx::query(sql)
                .bind(id.to_string())
                .bind(i64::try_from(number).unwrap_or(i64::MAX))
                // PostgreSQL rejects NUL.
                .bind(event.replace('\0', "\u{fffd}"))
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await
    }

    async fn read_events(&self, id: CallId, after: u64) -> Result<Vec<NumberedEvent>, sqlx::Error> {
        let sql = "SELECT number, event FROM call_events WHERE call_id = $1 AND number > $2 ORDER BY number LIMIT 1000";
        let found = sqlx::query(sql)
            .bind(id.to_string())
            .bind(i64::try_from(after).unwrap_or(i64::MAX))
            .fetch_all(&self.db.engine.pool)
            .await?;
        let mut events = Vec::with_capacity(found.len());
        for row in &found {
            let (number, event): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
            if let Ok(event) = serde_json::from_str::<StoredEvent>(event) {
                events.push(NumberedEvent {
                    number: u64::try_from(number).unwrap_or_default(),
                    event: event.into(),
                });
            }
        }
        Ok(events)
    }
}

/// Returns the query for tenants with calls that are due: `$1` is the tenant before the first, `$2` the last one or empty,
/// `$3` the time.
pub(crate) fn due_tenants() -> String {
    let first = |after: &str| {
        format!(
            "SELECT tenant FROM calls WHERE status = 'pending' AND tenant > {after} AND ($2 = '' OR tenant <= $2) \
             AND not_before <= $3 ORDER BY tenant LIMIT 1"
        )
    };
    format!(
        "WITH RECURSIVE waiting (tenant) AS (SELECT * FROM ({}) AS first UNION ALL \
         SELECT ({}) FROM waiting WHERE waiting.tenant IS NOT NULL) \
         SELECT tenant FROM waiting WHERE tenant IS NOT NULL LIMIT {TENANTS_PER_QUERY}",
        first("$1"),
        first("waiting.tenant")
    )
}

/// Stores the new state of a call that has not ended.
pub(crate) async fn store_state(
    tx: &mut Transaction<'static, Any>,
    call: &CallRecord,
) -> Result<(), StoreError> {
    let row = CallRow::new(call)?;
    let sql = "UPDATE calls SET status = $1, final = $2, error_code = $3, record = $4, rule = $5, decision = $6 \
               WHERE tenant = $7 AND id = $8 AND final = 0";
    sqlx::query(sql)
        .bind(row.status.as_str())
        .bind(i64::from(row.status.is_final()))
        .bind(row.error_code.map(ErrorCode::as_str))
        .bind(&*row.record)
        .bind(row.rule.as_deref())
        .bind(row.decision.map(AuditDecision::as_str))
        .bind(row.tenant.as_str())
        .bind(row.id.to_string())
        .execute(&mut **tx)
        .await
        .map_err(failed_to("store the state of a call"))?;
    Ok(())
}

/// An event as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StoredEvent {
    Output(String),
    Printed(String),
    Value(String),
    Progress(f64, String),
}

impl From<CallEvent> for StoredEvent {
    fn from(event: CallEvent) -> Self {
        match event {
            CallEvent::Output(line) => Self::Output(line),
            CallEvent::Printed(line) => Self::Printed(line),
            CallEvent::Value(line) => Self::Value(line),
            CallEvent::Progress(fraction, text) => Self::Progress(fraction, text),
        }
    }
}

impl From<StoredEvent> for CallEvent {
    fn from(event: StoredEvent) -> Self {
        match event {
            StoredEvent::Output(line) => Self::Output(line),
            StoredEvent::Printed(line) => Self::Printed(line),
            StoredEvent::Value(line) => Self::Value(line),
            StoredEvent::Progress(fraction, text) => Self::Progress(fraction, text),
        }
    }
}
