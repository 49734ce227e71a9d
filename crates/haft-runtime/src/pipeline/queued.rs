//! Calls from the queue: they pass the same steps as all others, on the node that has claimed them.

use std::sync::Arc;
use std::time::Duration;

use haft_core::Timestamp;
use haft_core::approval::ApprovalCause;
use haft_core::call::CallRecord;
use haft_core::outcome::{CallError, ErrorCode};

use super::approved::content_digest;
use super::bound::CallInputs;
use super::{CheckedCall, Pipeline, RejectedCall};
use crate::clock;
use crate::registry::ResolvedTool;

/// The shortest and the longest time that a call goes back to the queue for.
const BACK_OFF: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_mins(1);

/// The maximum time until a node has loaded the changes of another one, with a margin. A younger call may refer to a token
/// or a tool that this node has not loaded yet.
const PROPAGATION: Duration = Duration::from_secs(2);

/// What became of a claimed call.
pub(crate) enum ClaimedCall {
    /// It ended, and its record is stored.
    Ended(Arc<CallRecord>),
    /// A limit was reached: it goes back to the queue.
    PutBack(Box<CallRecord>, Timestamp),
    /// It waits again, for another account or for an approval.
    Waits,
}

/// What a claimed call is checked with.
struct ClaimSource {
    principal: Arc<haft_core::principal::Principal>,
    was_approved: bool,
    inputs: CallInputs,
}

/// Returns whether a person approved a call; one that waited for an account only was not.
fn was_approved(record: &CallRecord) -> bool {
    let decision = record.decision.as_ref();
    decision.is_some_and(|decision| decision.approval_id.is_some() && decision.account.is_none())
}

fn waited_for_account(record: &CallRecord) -> bool {
    record.decision.as_ref().is_some_and(|decision| decision.account.is_some())
}

impl Pipeline {
    /// Runs a call that this node has claimed from the queue. The principal is the current one; `None` if its token is
    /// gone.
    pub(crate) async fn run_claimed(
        self: &Arc<Self>,
        record: CallRecord,
        principal: Option<Arc<haft_core::principal::Principal>>,
    ) -> Result<ClaimedCall, CallError> {
        let listed = self.in_flight.insert(record.id());
        let snapshot = self.registry.current();
        let tool =
            snapshot.tool(record.tenant(), record.invocation.tool_id).map(|tool| snapshot.resolved(tool));
        drop(snapshot);
        if self.is_behind(&record, tool.as_ref(), principal.is_some()) {
            return Ok(self.requeue(record, None));
        }
        let Some(tool) = tool else {
            let message = format!("`{}` was deleted before the call ran", record.invocation.tool);
            return self.end(record, CallError::new(ErrorCode::NotFound, message)).await;
        };
        let Some(principal) = principal else {
            let message = "the token that asked for the call was revoked or has expired before the call ran";
            return self.end(record, CallError::new(ErrorCode::Unauthorized, message)).await;
        };
        // The role may have changed while the call waited.
        if let Err(error) = super::check_role(&principal) {
            return self.end(record, error).await;
        }
        let was_approved = was_approved(&record);
        self.compile(&tool, record.invocation.mode).await;
        let args = std::iter::once(&record.invocation.args);
        let inputs = self.read_inputs(&tool, record.invocation.mode, &principal, args).await;
        let source = ClaimSource { principal, was_approved, inputs };
        let mut checked = match self.check_claimed(&tool, record.clone(), source) {
            Ok(checked) => checked,
            Err(rejected) => return self.settle(record, rejected.error).await,
        };
        if was_approved && let Err(error) = self.check_unchanged(&checked).await {
            return self.settle(record, error).await;
        }
        if let Some(claimed) = Box::pin(self.not_ready(&record, &mut checked)).await? {
            return Ok(claimed);
        }
        let mut call = match self.try_admit(checked).await {
            Ok(call) => call,
            Err(rejected) => return Ok(self.requeue(record, rejected.error.retry_after)),
        };
        let cancel = self.call_stops.token(call.principal()).child_token();
        let (background, _listed) = self.background.insert(call.id(), call.tenant().clone(), cancel);
        call.cancel = Some(background.cancel.clone());
        if call.admission.may_wait() {
            // The time of a call begins when it may run.
            let started = clock::now();
            let acquired = tokio::select! {
                acquired = call.admission.acquire() => acquired,
                () = background.cancel.cancelled() => Err(self.cancelled(call.entry())),
            };
            match acquired {
                Ok(_) => call.draft.context.deadline += clock::since(started),
                Err(error) if error.code == ErrorCode::Cancelled => return self.end(record, error).await,
                Err(error) => return Ok(self.requeue(record, error.retry_after)),
            }
        }
        let running = Arc::clone(&background);
        call.draft.context.events = Some(background);
        let completed = self.run(call).await?;
        if let Some(waiting) = &self.waiting
            && let unsaved = running.take_unsaved()
            && !unsaved.is_empty()
            && let Err(error) = waiting.queue.append_events(completed.record.id(), unsaved).await
        {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "cannot store the last events of a call"
            );
        }
        listed.finish(&completed.record);
        Ok(ClaimedCall::Ended(completed.record))
    }

    /// Returns what becomes of a claimed call that has to wait again or may not run any more; `None` if it may run.
    async fn not_ready(
        &self,
        record: &CallRecord,
        checked: &mut CheckedCall,
    ) -> Result<Option<ClaimedCall>, CallError> {
        if waited_for_account(record) {
            match self.next_wait(checked).await {
                Ok(None) => {}
                Ok(Some(cause)) => return self.wait_again(record.clone(), checked, cause).await.map(Some),
                Err(error) => return self.settle(record.clone(), error).await.map(Some),
            }
        }
        let Some(cause) = checked.needs_approval.take() else { return Ok(None) };
        // It was queued under a remembered approval, which may have been revoked since.
        match self.granted(checked, cause.clone()).await {
            Ok(Some(by)) => {
                checked.draft.decision.get_or_insert_default().decided_by = Some(by);
                Ok(None)
            }
            Ok(None) => {
                let reason = cause.reason(checked.plan.spec.name.as_str());
                let message = format!("the call needs approval and none was requested: {reason}; call again");
                let error = CallError::new(ErrorCode::ApprovalRequired, message);
                self.end(record.clone(), error).await.map(Some)
            }
            Err(error) => self.settle(record.clone(), error).await.map(Some),
        }
    }

    /// Returns whether this node may not have loaded the token or the tool of a call yet.
    fn is_behind(&self, record: &CallRecord, tool: Option<&ResolvedTool>, knows_token: bool) -> bool {
        let invocation = &record.invocation;
        let revision = tool.and_then(|tool| Some(tool.entry.definition(invocation.mode.into())?.0));
        let is_known = knows_token && revision >= Some(invocation.revision);
        !is_known && self.clock.now().duration_since(record.started_at).unsigned_abs() < PROPAGATION
    }

    /// Rejects an approved call whose content changed after the approval.
    async fn check_unchanged(&self, checked: &CheckedCall) -> Result<(), CallError> {
        let invocation = &checked.draft.invocation;
        let digest = content_digest(&checked.plan, &invocation.principal.tenant, invocation.mode).await?;
        if invocation.definition_hash.as_ref() == Some(&digest) {
            return Ok(());
        }
        let message = "the tool, or what it runs, was changed after the call was approved; ask again";
        Err(CallError::new(ErrorCode::Conflict, message))
    }

    fn check_claimed(
        self: &Arc<Self>,
        tool: &ResolvedTool,
        record: CallRecord,
        ClaimSource { principal, was_approved, inputs: CallInputs { loaded, bound } }: ClaimSource,
    ) -> Result<CheckedCall, Box<RejectedCall>> {
        let requested_at = record.started_at;
        let mut invocation = record.invocation;
        invocation.principal = principal;
        let mut draft = self.draft_of(invocation);
        let approved_rule = record.decision.as_ref().and_then(|decision| decision.rule.clone());
        draft.decision = record.decision;
        draft.bound = bound;
        draft.steps.wait_ms = wait_ms(requested_at, draft.started_at);
        let result = loaded
            .and_then(|loaded| {
                draft.loaded = loaded;
                self.check_draft(tool, &mut draft, was_approved)
            })
            .and_then(|(plan, cause)| match cause {
                None => Ok((plan, None)),
                Some(ApprovalCause::Rule(rule)) if was_approved && approved_rule.as_ref() == Some(&rule) => {
                    Ok((plan, None))
                }
                Some(cause) if was_approved => {
                    let reason = cause.reason(plan.spec.name.as_str());
                    let message =
                        format!("the approval does not cover the call any more: {reason}; call again");
                    Err(CallError::new(ErrorCode::ApprovalRequired, message))
                }
                Some(cause) => Ok((plan, Some(cause))),
            });
        if let Some((number, _)) = tool.entry.definition(draft.invocation.mode.into()) {
            draft.invocation.revision = number;
        }
        match result {
            Ok((plan, needs_approval)) => {
                let entry = Arc::clone(&tool.entry);
                Ok(CheckedCall { entry, plan, draft, needs_approval, listed: None })
            }
            Err(error) => Err(Box::new(RejectedCall { error, draft })),
        }
    }

    /// Ends a claimed call that cannot run.
    pub(super) async fn end(
        &self,
        mut record: CallRecord,
        error: CallError,
    ) -> Result<ClaimedCall, CallError> {
        record.finish(Err(error), self.clock.now(), 0.0);
        let record = Arc::new(record);
        self.record(Arc::clone(&record)).await.map_err(super::not_recorded)?;
        if let Some(observer) = &self.observer {
            observer(&record);
        }
        Ok(ClaimedCall::Ended(record))
    }

    /// Requeues a call while the store is unavailable or the server starts or stops. Any other error would come back, and
    /// ends it.
    pub(super) async fn settle(
        &self,
        record: CallRecord,
        error: CallError,
    ) -> Result<ClaimedCall, CallError> {
        match error.code {
            ErrorCode::StoreUnavailable | ErrorCode::Cancelled => Ok(self.requeue(record, error.retry_after)),
            _ => self.end(record, error).await,
        }
    }

    fn requeue(&self, record: CallRecord, wait: Option<Duration>) -> ClaimedCall {
        let wait = wait.unwrap_or_default().clamp(*BACK_OFF.start(), *BACK_OFF.end());
        let now = self.clock.now();
        ClaimedCall::PutBack(Box::new(record), now.checked_add(wait).unwrap_or(now))
    }
}

fn wait_ms(from: Timestamp, to: Timestamp) -> f64 {
    let micros = to.as_microsecond().saturating_sub(from.as_microsecond()).max(0);
    f64::from(u32::try_from(micros).unwrap_or(u32::MAX)) / 1000.0
}
