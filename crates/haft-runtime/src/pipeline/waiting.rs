//! The steps that may have to wait: idempotency, approval, the queue.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::Timestamp;
use haft_core::approval::{Approval, ApprovalAnswer, ApprovalCause, ApprovalStatus, GrantQuery};
use haft_core::backoff::Backoff;
use haft_core::call::{CallDecision, CallRecord, CallStatus};
use haft_core::hash;
use haft_core::id::{ApprovalId, CallId};
use haft_core::ledger::{Enqueued, Reservation};
use haft_core::limit::LimitName;
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::approved::content_digest;
use super::call::CallDraft;
use super::checks::{approval_impossible, not_recorded};
use super::{CheckedCall, CompletedCall, Pipeline, RejectedCall, WaitingCalls};
use crate::clock;

/// The first and the last interval of polling a call on another node.
const POLL_INTERVAL: Backoff = Backoff::new(Duration::from_millis(20), Duration::from_millis(500));

/// What became of a call that had to be stored before it runs.
pub(super) enum CallReservation {
    /// It may run.
    Run(Box<CheckedCall>),
    /// The same call was made earlier.
    Replay(CompletedCall),
}

impl Pipeline {
    /// Reserves the idempotency key, or waits for the outcome of the call that has it.
    pub(super) async fn reserve(&self, mut checked: CheckedCall) -> Result<CallReservation, CallError> {
        let Some(ledger) = &self.ledger else { return Ok(CallReservation::Run(Box::new(checked))) };
        let record = checked.draft.open_record(CallStatus::Running);
        let deadline = checked.draft.context.deadline;
        // Before the row exists, so that a request that finds the row can wait here.
        let listed = self.in_flight.insert(record.id());
        match ledger.reserve(record).await.map_err(not_recorded)? {
            Reservation::Taken => {
                checked.draft.steps.reserve_ms = checked.draft.step();
                checked.listed = Some(listed);
                Ok(CallReservation::Run(Box::new(checked)))
            }
            Reservation::Existing(earlier) => {
                drop(listed);
                self.earlier(&checked.draft, *earlier, deadline).await.map(CallReservation::Replay)
            }
        }
    }

    /// Runs a call whose key is reserved. If it is not admitted, the key is free again.
    pub(super) async fn run_reserved(
        self: &Arc<Self>,
        mut checked: CheckedCall,
    ) -> Result<CompletedCall, CallError> {
        let listed = checked.listed.take();
        let mut call = match self.try_admit(checked).await {
            Ok(call) => call,
            Err(rejected) => return Err(self.release(rejected).await),
        };
        // It runs on without its client, so it can be cancelled like a queued one.
        let cancel = self.call_stops.token(call.principal()).child_token();
        let (background, _listed) = self.background.insert(call.id(), call.tenant().clone(), cancel);
        call.cancel = Some(background.cancel.clone());
        let stop = call.draft.stop.take();
        let completed = stoppable(self.run(call), &background.cancel, stop).await?;
        if let Some(listed) = listed {
            listed.finish(&completed.record);
        }
        Ok(completed)
    }

    async fn release(&self, rejected: Box<RejectedCall>) -> CallError {
        let Some(ledger) = &self.ledger else { return rejected.error };
        let RejectedCall { error, mut draft } = *rejected;
        draft.invocation.idempotency_key = None;
        let record = draft.finished_record(Err(error.clone()));
        if let Some(observer) = &self.rejections {
            observer(&record);
        }
        let error = CallError { call_id: Some(record.id()), ..error };
        ledger.release(record).await.map_or_else(not_recorded, |()| error)
    }

    /// Returns the outcome of the earlier call with the same idempotency key.
    async fn earlier(
        &self,
        draft: &CallDraft,
        earlier: CallRecord,
        deadline: Instant,
    ) -> Result<CompletedCall, CallError> {
        let id = earlier.id();
        check_same_call(draft, &earlier)?;
        if let Some(error) = self.still_awaiting(&earlier) {
            return Err(error);
        }
        let record = if earlier.status.is_final() {
            Some(Arc::new(earlier))
        } else {
            self.wait_for(draft.invocation.tenant(), id, deadline).await?
        };
        match record {
            Some(record) => Ok(CompletedCall::uncounted(record, true)),
            None => Err(conflict(id, "a call with this Idempotency-Key is still running").retryable(true)),
        }
    }

    /// Waits until a call has ended, on whatever node; `None` at the deadline.
    pub async fn wait_for(
        &self,
        tenant: &TenantId,
        id: CallId,
        deadline: Instant,
    ) -> Result<Option<Arc<CallRecord>>, CallError> {
        self.wait_until(tenant, id, deadline, |record| record.status.is_final()).await
    }

    /// Waits until a call has ended, or its record has what is asked for; `None` at the deadline.
    pub(super) async fn wait_until(
        &self,
        tenant: &TenantId,
        id: CallId,
        deadline: Instant,
        is_over: impl Fn(&CallRecord) -> bool + Send,
    ) -> Result<Option<Arc<CallRecord>>, CallError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let mut polls = 0;
        loop {
            let rest = deadline.saturating_duration_since(clock::now());
            if let Ok(Some(record)) = tokio::time::timeout(rest, self.in_flight.wait(id)).await {
                return Ok(Some(record));
            }
            match ledger.call(tenant, id).await.map_err(not_recorded)? {
                None => return Ok(None),
                Some(record) if is_over(&record) => return Ok(Some(Arc::new(record))),
                Some(_) if clock::now() >= deadline => return Ok(None),
                Some(_) => {}
            }
            tokio::time::sleep(POLL_INTERVAL.wait(polls, 0.0).min(rest)).await;
            polls += 1;
        }
    }

    /// Asks for approval, or picks up an earlier decision about the same call.
    pub(super) async fn request_approval(
        &self,
        mut checked: CheckedCall,
    ) -> Result<CallReservation, CallError> {
        let Some(cause) = checked.needs_approval.take() else {
            return Ok(CallReservation::Run(Box::new(checked)));
        };
        let Some(waiting) = &self.waiting else {
            let error = approval_impossible(checked.plan.spec.name.as_str(), &cause);
            return Err(self.reject(checked, error).await);
        };
        let (definition_hash, args_digest) = match pin_definition_and_args(&mut checked).await {
            Ok(pinned) => pinned,
            Err(error) => return Err(self.reject(checked, error).await),
        };
        let draft = &mut checked.draft;
        let created_at = draft.started_at;
        let invocation = &draft.invocation;
        let approval = Approval {
            id: ApprovalId(Uuid::now_v7()),
            call_id: invocation.id,
            tool_id: invocation.tool_id,
            tool: Arc::clone(&invocation.tool),
            revision: invocation.revision,
            definition_hash,
            args: invocation.args.clone(),
            args_digest,
            requested_by: Arc::clone(&invocation.principal),
            surface: invocation.surface.to_string(),
            session: invocation.session.as_deref().map(str::to_owned),
            cause: cause.clone(),
            status: ApprovalStatus::Waiting,
            created_at,
            expires_at: created_at.checked_add(waiting.approval_lifetime).unwrap_or(Timestamp::MAX),
            decided_at: None,
            decided_by: None,
            reason: None,
            args_edited: false,
            requested_args: None,
            remembered: None,
        };
        let decision = draft.decision.get_or_insert_default();
        decision.approval_id = Some(approval.id.0);
        if let ApprovalCause::Account(provider) = cause {
            decision.account = Some(provider);
        }
        let record = draft.open_record(CallStatus::AwaitingApproval);
        let deadline = draft.context.deadline;
        let limit = self.max_waiting(waiting, record.tenant());
        match waiting.approvals.request(record, approval, limit).await.map_err(not_recorded)? {
            ApprovalAnswer::Granted(by) => {
                checked.draft.decision = Some(Box::new(CallDecision {
                    approval_id: None,
                    decided_by: Some(by),
                    ..checked.draft.decision.map(|decision| *decision).unwrap_or_default()
                }));
                Ok(CallReservation::Run(Box::new(checked)))
            }
            ApprovalAnswer::Waiting(approval) => Err(self.awaiting(&approval)),
            ApprovalAnswer::Existing(earlier) => {
                self.earlier(&checked.draft, *earlier, deadline).await.map(CallReservation::Replay)
            }
            ApprovalAnswer::Full(limit) => {
                let message = format!("{limit} calls of this tenant wait for approval already; retry later");
                let error = LimitName::QueuedCalls.refuse(limit, message, None);
                Err(self.reject(checked, error).await)
            }
            ApprovalAnswer::Decided(_, earlier) => {
                let completed = match self.still_awaiting(&earlier) {
                    Some(error) => return Err(error),
                    None if earlier.status.is_final() => Some(Arc::new(*earlier)),
                    None => self.wait_for(earlier.tenant(), earlier.id(), deadline).await?,
                };
                let record = completed.ok_or_else(|| {
                    CallError::new(ErrorCode::Timeout, "the approved call is still running; ask again later")
                })?;
                Ok(CallReservation::Replay(CompletedCall::uncounted(record, true)))
            }
        }
    }

    /// Returns who granted a remembered approval that covers a call from the queue.
    pub(super) async fn granted(
        &self,
        checked: &CheckedCall,
        cause: ApprovalCause,
    ) -> Result<Option<String>, CallError> {
        let Some(waiting) = &self.waiting else { return Ok(None) };
        let invocation = &checked.draft.invocation;
        let query = GrantQuery {
            tool_id: invocation.tool_id,
            definition_hash: content_digest(&checked.plan, &invocation.principal.tenant, invocation.mode)
                .await?,
            args_digest: hash::of_args(&invocation.args),
            requested_by: Arc::clone(&invocation.principal),
            session: invocation.session.as_deref().map(str::to_owned),
            cause,
        };
        waiting.approvals.granted(query).await.map_err(not_recorded)
    }

    pub(super) async fn reject(&self, checked: CheckedCall, error: CallError) -> CallError {
        self.record_rejection(Box::new(RejectedCall { error, draft: checked.draft })).await
    }

    /// Returns how many calls of a tenant may wait in the queue, and how many for approval.
    fn max_waiting(&self, waiting: &WaitingCalls, tenant: &TenantId) -> u64 {
        waiting.max_queued.min(self.limits_of(tenant).max_queued_calls.unwrap_or(u64::MAX))
    }

    /// Puts a call into the queue.
    pub(super) async fn enqueue(&self, mut checked: CheckedCall) -> Result<CompletedCall, CallError> {
        let Some(waiting) = &self.waiting else {
            return Err(CallError::internal("this pipeline has no queue"));
        };
        if let Err(error) = pin_definition_and_args(&mut checked).await {
            return Err(self.reject(checked, error).await);
        }
        let deadline = checked.draft.context.deadline;
        let record = checked.draft.open_record(CallStatus::Pending);
        let max_queued = self.max_waiting(waiting, record.tenant());
        let stored = waiting.queue.enqueue(record.clone(), max_queued).await.map_err(not_recorded)?;
        match stored {
            Enqueued::Queued => Ok(CompletedCall::uncounted(Arc::new(record), false)),
            Enqueued::Existing(earlier) if earlier.status.is_final() => {
                self.earlier(&checked.draft, *earlier, deadline).await
            }
            Enqueued::Existing(earlier) => {
                check_same_call(&checked.draft, &earlier)?;
                Ok(CompletedCall::uncounted(Arc::from(earlier), false))
            }
            Enqueued::Full(limit) => {
                let message =
                    format!("the limit of {limit} queued calls of this tenant is reached; retry later");
                let error = LimitName::QueuedCalls.refuse(limit, message, None);
                Err(self.reject(checked, error).await)
            }
        }
    }
}

/// Runs a call to its end; `stop` cancels it.
async fn stoppable<T>(
    running: impl Future<Output = T>,
    cancel: &CancellationToken,
    stop: Option<CancellationToken>,
) -> T {
    let Some(stop) = stop else { return running.await };
    let mut running = pin!(running);
    tokio::select! {
        biased;
        ended = &mut running => ended,
        () = stop.cancelled() => {
            cancel.cancel();
            running.await
        }
    }
}

/// Checks that the earlier call with the same idempotency key is the same call.
fn check_same_call(draft: &CallDraft, earlier: &CallRecord) -> Result<(), CallError> {
    let (then, now) = (&earlier.invocation, &draft.invocation);
    // Calls of earlier versions have the digest of their arguments with the defaults filled in.
    let has_same_args = || {
        then.args_digest == now.args_digest
            || then.args_digest.as_ref().is_some_and(|digest| *digest == hash::of_args(&now.args))
    };
    if then.tool_id == now.tool_id && has_same_args() {
        return Ok(());
    }
    Err(conflict(earlier.id(), "the Idempotency-Key was used for another tool or other arguments"))
}

fn conflict(earlier: CallId, message: &str) -> CallError {
    CallError::new(ErrorCode::IdempotencyConflict, message).with_details(json!({"call_id": earlier}))
}

/// Stores the digest of the content that the call would run; returns it, and that of the arguments that would run. A call
/// with an idempotency key keeps the digest of its arguments as requested.
async fn pin_definition_and_args(checked: &mut CheckedCall) -> Result<(String, String), CallError> {
    let invocation = &mut checked.draft.invocation;
    let hash = content_digest(&checked.plan, &invocation.principal.tenant, invocation.mode).await?;
    let digest = hash::of_args(&invocation.args);
    invocation.definition_hash = Some(hash.clone());
    invocation.args_digest.get_or_insert_with(|| digest.clone());
    Ok((hash, digest))
}
