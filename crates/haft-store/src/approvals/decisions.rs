//! Approvals: calls that wait for a person, their decisions, and the decisions that are remembered.

use std::sync::Arc;

use haft_core::approval::{
    Approval, ApprovalAnswer, ApprovalCause, ApprovalStatus, Approvals, GrantQuery, NextWait, Remember,
    RememberScope,
};
use haft_core::call::{CallDecision, CallRecord, CallStatus};
use haft_core::catalog::StoreError;
use haft_core::id::ApprovalId;
use haft_core::ledger::Ledger as _;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::principal::Principal;
use haft_core::{BoxFuture, hash};
use serde_json::Value;
use sqlx::{Any, Row as _, Transaction};
use tokio::sync::watch;

use super::grants::grant;
use crate::database::Database;
use crate::engine::failed_to;
use crate::ledger::Calls;
use crate::ledger::approvals::{parse, to_text, update};
use crate::ledger::queue::store_state;
use crate::ledger::record::{self, CallRow};

/// How many approvals are ended at once.
const EXPIRED_AT_ONCE: i64 = 100;

const ASK: &str = "ask for approval";
const DECIDE: &str = "store the decision";
const READ: &str = "read approvals";

/// A person's decision about a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ApprovalDecision {
    /// Run it, with these arguments instead if given.
    Approve {
        /// The changed arguments.
        args: Option<Value>,
        /// What to remember.
        remember: Option<Remember>,
        /// Why the call needs approval as it is now, if it does: the rules or the arguments may have changed.
        cause: Option<ApprovalCause>,
    },
    /// Do not run it.
    Deny {
        /// Why, for the requester.
        reason: Option<String>,
    },
    /// The tool has changed since the call was requested, so the approval would cover other content.
    Outdate,
}

/// A query for approvals; results are sorted newest first.
#[derive(Debug, Clone)]
pub struct ApprovalQuery {
    /// The tenant.
    pub tenant: TenantId,
    /// Only approvals in this state.
    pub status: Option<ApprovalStatus>,
    /// Only those that this principal asked for.
    pub requested_by: Option<String>,
    /// Only approvals older than this one.
    pub before: Option<ApprovalId>,
    /// The maximum number.
    pub limit: u32,
}

/// The approvals that calls need, and those that are remembered.
#[derive(Clone)]
pub struct StoredApprovals {
    pub(super) db: Arc<Database>,
    pub(super) calls: Calls,
}

impl StoredApprovals {
    pub(crate) fn new(db: &Arc<Database>, calls: &Calls) -> Self {
        Self { db: Arc::clone(db), calls: calls.clone() }
    }
}

impl Approvals for StoredApprovals {
    fn request(
        &self,
        call: CallRecord,
        approval: Approval,
        limit: u64,
    ) -> BoxFuture<'_, Result<ApprovalAnswer, StoreError>> {
        let this = self.clone();
        let work = async move {
            this.calls.state.health.observe(this.request_approval(call, approval, limit).await)
        };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn granted(&self, query: GrantQuery) -> BoxFuture<'_, Result<Option<String>, StoreError>> {
        Box::pin(async move {
            let mut connection = self.db.engine.pool.acquire().await.map_err(failed_to(READ))?;
            grant(&mut connection, &query).await.map_err(failed_to(READ))
        })
    }

    fn wait_again(&self, call: CallRecord, next: NextWait) -> BoxFuture<'_, Result<bool, StoreError>> {
        let this = self.clone();
        let work = async move { this.store_next_wait(call, next).await };
        Box::pin(async move { self.db.complete(work).await })
    }

    fn with_call<'a>(
        &'a self,
        tenant: &'a TenantId,
        id: ApprovalId,
    ) -> BoxFuture<'a, Result<Option<(Approval, CallRecord)>, StoreError>> {
        Box::pin(async move {
            let Some(approval) = self.get(tenant, id).await? else { return Ok(None) };
            let call = self.calls.call(tenant, approval.call_id).await?;
            Ok(call.map(|call| (approval, call)))
        })
    }
}

impl StoredApprovals {
    /// Returns one approval.
    pub async fn get(&self, tenant: &TenantId, id: ApprovalId) -> Result<Option<Approval>, StoreError> {
        let sql = "SELECT record FROM approvals WHERE tenant = $1 AND id = $2";
        let found = sqlx::query(sql).bind(tenant.as_str()).bind(id.to_string());
        let found = found.fetch_optional(&self.db.engine.pool).await.map_err(failed_to(READ))?;
        found.map(|row| parse(row.try_get(0).map_err(failed_to(READ))?)).transpose()
    }

    /// Lists approvals, newest first, and how many match.
    pub async fn list(&self, query: ApprovalQuery) -> Result<(Vec<Approval>, u64), StoreError> {
        let status = query.status.map(ApprovalStatus::as_str).unwrap_or_default();
        let principal = query.requested_by.unwrap_or_default();
        let before = query.before.map_or_else(|| "g".to_owned(), |id| id.to_string());
        let matching =
            "FROM approvals WHERE tenant = $1 AND ($2 = '' OR status = $2) AND ($3 = '' OR principal = $3)";
        let count = sqlx::AssertSqlSafe(format!("SELECT COUNT(*) {matching}"));
        let bind = |sql| sqlx::query(sql).bind(query.tenant.to_string()).bind(status).bind(principal.clone());
        let total: i64 = bind(count)
            .fetch_one(&self.db.engine.pool)
            .await
            .and_then(|row| row.try_get(0))
            .map_err(failed_to(READ))?;
        let select =
            sqlx::AssertSqlSafe(format!("SELECT record {matching} AND id < $4 ORDER BY id DESC LIMIT $5"));
        let found = bind(select)
            .bind(before)
            .bind(i64::from(query.limit))
            .fetch_all(&self.db.engine.pool)
            .await
            .map_err(failed_to(READ))?;
        let approvals = found
            .iter()
            .map(|row| parse(row.try_get(0).map_err(failed_to(READ))?))
            .collect::<Result<_, StoreError>>()?;
        Ok((approvals, u64::try_from(total).unwrap_or_default()))
    }

    /// Decides about a call that waits. An approved call goes into the queue.
    pub async fn decide(
        &self,
        id: ApprovalId,
        approver: &Principal,
        decision: ApprovalDecision,
    ) -> Result<Approval, StoreError> {
        let approver = approver.clone();
        let this = self.clone();
        let work = async move {
            let approver = &approver;
            let mut tx = this.db.engine.begin_change().await.map_err(failed_to(DECIDE))?;
            let sql = "SELECT record FROM approvals WHERE tenant = $1 AND id = $2";
            let found = sqlx::query(sql).bind(approver.tenant.as_str()).bind(id.to_string());
            let found = found.fetch_optional(&mut *tx).await.map_err(failed_to(DECIDE))?;
            let Some(found) = found else { return Err(StoreError::not_found("approval", id)) };
            let mut approval = parse(found.try_get(0).map_err(failed_to(DECIDE))?)?;
            let (status, now) = (approval.status, this.db.now());
            if status != ApprovalStatus::Waiting || approval.expires_at <= now {
                let state = if status == ApprovalStatus::Waiting { "expired" } else { status.as_str() };
                let by = approval.decided_by.as_ref().map(|by| format!(" by `{by}`")).unwrap_or_default();
                return Err(StoreError::Conflict(format!("the approval was already decided: {state}{by}")));
            }
            let Some(mut call) = this.call_in(&mut tx, &approval).await? else {
                return Err(StoreError::not_found("call", approval.call_id));
            };
            approval.decided_at = Some(now);
            approval.decided_by = Some(approver.name.to_string());
            let note = call.decision.get_or_insert_default();
            **note = CallDecision { decided_by: approval.decided_by.clone(), ..CallDecision::clone(note) };
            match decision {
                ApprovalDecision::Approve { args, remember, cause } => {
                    if let Some(cause) = cause {
                        if let ApprovalCause::Rule(rule) = &cause {
                            note.rule = Some(rule.clone());
                        }
                        approval.cause = cause;
                    }
                    let is_for_session =
                        remember.is_some_and(|remember| remember.scope == RememberScope::Session);
                    if is_for_session && approval.session.is_none() {
                        let message = "the call belongs to no chat or session to remember the approval for; use `token`";
                        return Err(StoreError::Conflict(message.to_owned()));
                    }
                    approve(&mut approval, &mut call, args);
                    approval.remembered = remember;
                    if let Some(remember) = remember {
                        this.remember(&mut tx, &approval, remember).await.map_err(failed_to(DECIDE))?;
                    }
                }
                ApprovalDecision::Deny { reason } => deny(&mut approval, &mut call, reason, approver, now),
                ApprovalDecision::Outdate => {
                    expire(&mut approval, &mut call, "the tool was changed meanwhile", now);
                }
            }
            store_state(&mut tx, &call).await?;
            update(&mut tx, &approval).await?;
            this.calls
                .state
                .approvals
                .announce(&mut tx, &approval, &call)
                .await
                .map_err(failed_to(DECIDE))?;
            tx.commit().await.map_err(failed_to(DECIDE))?;
            this.calls.state.queue_changed.notify_one();
            this.calls.state.approvals.report(&approval, &call);
            Ok(approval)
        };
        self.db.complete(work).await
    }

    /// Notes that the requester has the outcome of a decided call, so that the same call later is a new one.
    pub async fn collect(&self, id: ApprovalId) -> Result<(), StoreError> {
        let sql = "UPDATE approvals SET collected = 1 WHERE id = $1 AND status <> 'waiting'";
        let collected = sqlx::query(sql).bind(id.to_string()).execute(&self.db.engine.pool).await;
        collected.map(drop).map_err(failed_to(DECIDE))
    }

    /// Returns a number that changes whenever approvals may have changed.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.calls.state.approvals.subscribe()
    }

    /// Expires undecided approvals; returns their number.
    pub async fn expire(&self) -> Result<usize, StoreError> {
        let this = self.clone();
        let work = async move {
            let sql = "SELECT record FROM approvals WHERE status = 'waiting' AND expires_at <= $1 ORDER BY expires_at LIMIT $2";
            let due = sqlx::query(sql).bind(this.db.now().as_microsecond()).bind(EXPIRED_AT_ONCE);
            let due = due.fetch_all(&this.db.engine.pool).await.map_err(failed_to(READ))?;
            if due.is_empty() {
                return Ok(0);
            }
            let mut tx = this.db.engine.begin_change().await.map_err(failed_to(DECIDE))?;
            let mut ended = Vec::new();
            for row in &due {
                let id = parse(row.try_get(0).map_err(failed_to(READ))?)?.id;
                // Read again under the lock: it may have been decided meanwhile.
                let sql = "SELECT record FROM approvals WHERE id = $1 AND status = 'waiting'";
                let found = sqlx::query(sql).bind(id.to_string()).fetch_optional(&mut *tx).await;
                let Some(found) = found.map_err(failed_to(READ))? else { continue };
                let mut approval = parse(found.try_get(0).map_err(failed_to(READ))?)?;
                let Some(mut call) = this.call_in(&mut tx, &approval).await? else { continue };
                expire(&mut approval, &mut call, "the approval expired", this.db.now());
                store_state(&mut tx, &call).await?;
                update(&mut tx, &approval).await?;
                this.calls
                    .state
                    .approvals
                    .announce(&mut tx, &approval, &call)
                    .await
                    .map_err(failed_to(DECIDE))?;
                ended.push((approval, call));
            }
            tx.commit().await.map_err(failed_to(DECIDE))?;
            for (approval, call) in &ended {
                this.calls.state.approvals.report(approval, call);
            }
            Ok(ended.len())
        };
        self.db.complete(work).await
    }
}

impl StoredApprovals {
    async fn request_approval(
        &self,
        call: CallRecord,
        approval: Approval,
        limit: u64,
    ) -> Result<ApprovalAnswer, StoreError> {
        // One at a time, so that the same call asked twice at once waits once.
        let mut tx = self.db.engine.begin_change().await.map_err(failed_to(ASK))?;
        // The idempotency key of the caller identifies the call.
        let earlier = match &call.invocation.idempotency_key {
            None => self.earlier(&mut tx, &approval).await?,
            Some(_) => None,
        };
        // Before grants: a call whose approval was remembered has run, and its outcome is picked up first.
        if !matches!(earlier, Some(ApprovalAnswer::Decided(..)))
            && let Some(by) = grant(&mut tx, &approval.grant_query()).await.map_err(failed_to(ASK))?
        {
            return Ok(ApprovalAnswer::Granted(by));
        }
        if let Some(answer) = earlier {
            tx.commit().await.map_err(failed_to(ASK))?;
            return Ok(answer);
        }
        let row = CallRow::new(&call)?;
        let existing = self.calls.insert_waiting(&mut tx, "", &call, &row).await.map_err(failed_to(ASK))?;
        if let Some(record) = existing {
            return Ok(ApprovalAnswer::Existing(Box::new(self.calls.newest(&record)?)));
        }
        // The transaction ends without a commit: the call is not stored.
        if waiting(&mut tx, &approval, limit).await.map_err(failed_to(ASK))? >= limit {
            return Ok(ApprovalAnswer::Full(limit));
        }
        let sql = "INSERT INTO approvals (id, tenant, call_id, principal, subject, status, expires_at, collected, record) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)";
        sqlx::query(sql)
            .bind(approval.id.to_string())
            .bind(approval.requested_by.tenant.as_str())
            .bind(approval.call_id.to_string())
            .bind(&*row.principal)
            .bind(subject(&approval))
            .bind(approval.status.as_str())
            .bind(approval.expires_at.as_microsecond())
            .bind(to_text(&approval)?)
            .execute(&mut *tx)
            .await
            .map_err(failed_to(ASK))?;
        self.calls.state.approvals.announce(&mut tx, &approval, &call).await.map_err(failed_to(ASK))?;
        tx.commit().await.map_err(failed_to(ASK))?;
        self.calls.state.usage.count(std::slice::from_ref(&row)).await;
        self.calls.state.approvals.report(&approval, &call);
        Ok(ApprovalAnswer::Waiting(Box::new(approval)))
    }

    /// Returns an earlier request of the same call that waits, or whose decision has not been used.
    async fn earlier(
        &self,
        tx: &mut Transaction<'static, Any>,
        approval: &Approval,
    ) -> Result<Option<ApprovalAnswer>, StoreError> {
        let sql = "SELECT record FROM approvals WHERE tenant = $1 AND principal = $2 AND subject = $3 \
                   AND collected = 0 ORDER BY id DESC LIMIT 1";
        let found = sqlx::query(sql)
            .bind(approval.requested_by.tenant.as_str())
            .bind(&*approval.requested_by.id())
            .bind(subject(approval))
            .fetch_optional(&mut **tx)
            .await
            .map_err(failed_to(ASK))?;
        let Some(found) = found else { return Ok(None) };
        let earlier = parse(found.try_get(0).map_err(failed_to(ASK))?)?;
        if earlier.status == ApprovalStatus::Waiting && earlier.expires_at > self.db.now() {
            return Ok(Some(ApprovalAnswer::Waiting(Box::new(earlier))));
        }
        let Some(call) = self.call_in(tx, &earlier).await? else { return Ok(None) };
        if call.status.is_final() {
            let collected =
                sqlx::query("UPDATE approvals SET collected = 1 WHERE id = $1").bind(earlier.id.to_string());
            collected.execute(&mut **tx).await.map_err(failed_to(ASK))?;
        }
        if matches!(earlier.status, ApprovalStatus::Approved | ApprovalStatus::Denied) {
            return Ok(Some(ApprovalAnswer::Decided(Box::new(earlier), Box::new(call))));
        }
        // Expired or cancelled: ask again.
        Ok(None)
    }

    pub(super) async fn call_in(
        &self,
        tx: &mut Transaction<'static, Any>,
        approval: &Approval,
    ) -> Result<Option<CallRecord>, StoreError> {
        let found = sqlx::query(record::select("WHERE tenant = $1 AND id = $2"))
            .bind(approval.requested_by.tenant.as_str())
            .bind(approval.call_id.to_string())
            .fetch_optional(&mut **tx)
            .await
            .map_err(failed_to(READ))?;
        found.map(|row| self.calls.newest(row.try_get(0).map_err(failed_to(READ))?)).transpose()
    }
}

/// Counts the approvals of a tenant that wait, up to a limit.
async fn waiting(
    tx: &mut Transaction<'static, Any>,
    approval: &Approval,
    limit: u64,
) -> Result<u64, sqlx::Error> {
    let sql = "SELECT COUNT(*) FROM (SELECT 1 FROM approvals WHERE tenant = $1 AND status = 'waiting' LIMIT $2) AS waiting";
    let count: i64 = sqlx::query(sql)
        .bind(approval.requested_by.tenant.as_str())
        .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        .fetch_one(&mut **tx)
        .await?
        .try_get(0)?;
    Ok(u64::try_from(count).unwrap_or_default())
}

fn approve(approval: &mut Approval, call: &mut CallRecord, args: Option<Value>) {
    approval.status = ApprovalStatus::Approved;
    if let Some(args) = args
        && args != approval.args
    {
        approval.args_edited = true;
        call.invocation.args = args.clone();
        approval.requested_args = Some(std::mem::replace(&mut approval.args, args));
    }
    call.status = CallStatus::Pending;
}

fn deny(
    approval: &mut Approval,
    call: &mut CallRecord,
    reason: Option<String>,
    approver: &Principal,
    now: haft_core::Timestamp,
) {
    approval.status = ApprovalStatus::Denied;
    approval.reason.clone_from(&reason);
    let why = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let message = format!("`{}` denied the call{why}", approver.name);
    let error = CallError::new(ErrorCode::ApprovalDenied, message)
        .for_model(format!("a person denied the call{why}"));
    call.finish(Err(error), now, 0.0);
}

fn expire(approval: &mut Approval, call: &mut CallRecord, why: &str, now: haft_core::Timestamp) {
    approval.status = ApprovalStatus::Expired;
    approval.reason = Some(why.to_owned());
    let message = format!("the approval has expired: {why}");
    call.finish(Err(CallError::new(ErrorCode::ApprovalExpired, message)), now, 0.0);
}

/// Returns what makes two calls of one caller the same.
pub(super) fn subject(approval: &Approval) -> String {
    let Approval { tool_id, definition_hash, args_digest, .. } = approval;
    hash::of_bytes(format!("{tool_id} {definition_hash} {args_digest}").as_bytes())
}
