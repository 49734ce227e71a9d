//! Calls whose person has to connect an account first: they fail, or wait like those that need approval.

use std::sync::Arc;
use std::time::Instant;

use haft_core::account::{self, AccountUser};
use haft_core::approval::{Approval, ApprovalCause, NextWait};
use haft_core::call::{CallRecord, CallStatus};
use haft_core::id::{ApprovalId, CallId};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::{BoxFuture, Timestamp, hash};
use serde_json::{Value, json};

use super::approved::content_digest;
use super::call::CallDraft;
use super::checks::{awaiting_approval, not_recorded};
use super::{CheckedCall, ClaimedCall, CompletedCall, Pipeline};

impl Pipeline {
    /// Checks that the person of a call has the accounts that it needs. One that waits is stored like one that needs
    /// approval, and goes on when the account is connected. Whether it needs approval, too, is asked then: nobody approves
    /// what cannot run.
    ///
    /// Boxed, because few calls need it, and nested calls share the stack of a thread.
    pub(super) fn check_account(
        &self,
        mut checked: CheckedCall,
        waits: bool,
    ) -> BoxFuture<'_, Result<CheckedCall, CallError>> {
        Box::pin(async move {
            let plan = Arc::clone(&checked.plan);
            let Some(error) = plan.prepared.missing_account(&checked.draft.context).await else {
                return Ok(checked);
            };
            let may_wait = waits && self.waiting.is_some();
            match provider(&error).filter(|_| may_wait) {
                Some(provider) => {
                    checked.needs_approval = Some(ApprovalCause::Account(provider));
                    Ok(checked)
                }
                None => Err(self.reject(checked, error).await),
            }
        })
    }

    /// Returns what a call from the queue, which waited for an account, waits for next: another account, or an approval
    /// that is not remembered.
    pub(super) async fn next_wait(&self, checked: &CheckedCall) -> Result<Option<ApprovalCause>, CallError> {
        let missing = if checked.plan.needs_account {
            checked.plan.prepared.missing_account(&checked.draft.context).await
        } else {
            None
        };
        if let Some(error) = missing {
            return provider(&error).map(|provider| Some(ApprovalCause::Account(provider))).ok_or(error);
        }
        let Some(cause) = &checked.needs_approval else { return Ok(None) };
        let granted = self.granted(checked, cause.clone()).await?;
        Ok(granted.is_none().then(|| cause.clone()))
    }

    /// Lets a call from the queue wait again. What an approver decides about is the call as it would run now.
    pub(super) async fn wait_again(
        &self,
        mut record: CallRecord,
        checked: &CheckedCall,
        cause: ApprovalCause,
    ) -> Result<ClaimedCall, CallError> {
        let approval = record.decision.as_ref().and_then(|decision| decision.approval_id);
        let (Some(waiting), Some(approval)) = (&self.waiting, approval) else {
            return self.end(record, CallError::internal("the call cannot wait again")).await;
        };
        let CallDraft { invocation, decision, .. } = &checked.draft;
        let digest = content_digest(&checked.plan, &invocation.principal.tenant, invocation.mode).await;
        let definition_hash = match digest {
            Ok(digest) => digest,
            Err(error) => return self.settle(record, error).await,
        };
        record.invocation.revision = invocation.revision;
        record.invocation.definition_hash = Some(definition_hash.clone());
        record.decision.clone_from(decision);
        let note = record.decision.get_or_insert_default();
        let expires_at = if let ApprovalCause::Account(provider) = &cause {
            note.account = Some(provider.clone());
            None
        } else {
            note.account = None;
            let now = self.clock.now();
            Some(now.checked_add(waiting.approval_lifetime).unwrap_or(Timestamp::MAX))
        };
        let revision = invocation.revision;
        let next = NextWait { approval: ApprovalId(approval), cause, revision, definition_hash, expires_at };
        match waiting.approvals.wait_again(record.clone(), next).await {
            Ok(true) => Ok(ClaimedCall::Waits),
            Ok(false) => {
                let error = CallError::new(ErrorCode::Cancelled, "the call was cancelled before it ran");
                self.end(record, error).await
            }
            Err(error) => self.settle(record, not_recorded(error)).await,
        }
    }

    /// Waits until a call that waits for an account has ended; `None` at the deadline. If it then waits for something else,
    /// that is the error.
    pub async fn wait_for_account(
        &self,
        tenant: &TenantId,
        id: CallId,
        provider: &str,
        deadline: Instant,
    ) -> Result<Option<CompletedCall>, CallError> {
        let waits_for_it = |record: &CallRecord| {
            let account = record.decision.as_ref().and_then(|decision| decision.account.as_deref());
            account == Some(provider)
        };
        let goes_on = |record: &CallRecord| {
            record.status.is_final()
                || (record.status == CallStatus::AwaitingApproval && !waits_for_it(record))
        };
        let Some(record) = self.wait_until(tenant, id, deadline, goes_on).await? else { return Ok(None) };
        match self.still_awaiting(&record) {
            Some(error) => Err(error),
            None => Ok(Some(CompletedCall::uncounted(record, false))),
        }
    }

    /// Returns what a call waits for now, if it waits for an account or for approval.
    pub async fn current_wait(&self, tenant: &TenantId, id: CallId) -> Result<Option<CallError>, CallError> {
        let Some(ledger) = &self.ledger else { return Ok(None) };
        let record = ledger.call(tenant, id).await.map_err(not_recorded)?;
        Ok(record.and_then(|record| self.still_awaiting(&record)))
    }

    /// Cancels a call that waits for an account which its person does not want to connect.
    pub async fn cancel_waiting(&self, tenant: &TenantId, id: CallId) -> Result<(), CallError> {
        let Some(waiting) = &self.waiting else { return Ok(()) };
        waiting.queue.cancel(tenant, id).await.map(drop).map_err(not_recorded)
    }

    /// Returns the call that waited for an account, if the request is the same call again.
    pub(super) async fn resumed(
        &self,
        checked: &CheckedCall,
        approval: ApprovalId,
    ) -> Result<Option<CompletedCall>, CallError> {
        let Some(waiting) = &self.waiting else { return Ok(None) };
        let invocation = &checked.draft.invocation;
        let found = waiting.approvals.with_call(invocation.tenant(), approval).await.map_err(not_recorded)?;
        let Some((earlier, record)) = found else { return Ok(None) };
        let is_same = earlier.requested_by.id() == invocation.principal.id()
            && earlier.tool_id == invocation.tool_id
            && earlier.args_digest == hash::of_args(&invocation.args);
        if !is_same {
            return Ok(None);
        }
        if let Some(error) = self.still_awaiting(&record) {
            return Err(error);
        }
        let deadline = checked.draft.context.deadline;
        let ended = if record.status.is_final() {
            Some(Arc::new(record))
        } else {
            self.wait_until(&earlier.requested_by.tenant, earlier.call_id, deadline, pauses).await?
        };
        let ended = ended.ok_or_else(|| {
            CallError::new(ErrorCode::Timeout, "the call is still running; ask again later")
        })?;
        match self.still_awaiting(&ended) {
            Some(error) => Err(error),
            None => Ok(Some(CompletedCall::uncounted(ended, true))),
        }
    }

    /// Returns the error of a call that waits for approval or for an account.
    pub(super) fn awaiting(&self, approval: &Approval) -> CallError {
        let ApprovalCause::Account(provider) = &approval.cause else { return awaiting_approval(approval) };
        let user = AccountUser::from(&*approval.requested_by);
        let more = json!({
            "approval_id": approval.id,
            "call_id": approval.call_id,
            "expires_at": approval.expires_at,
        });
        let error = waiting(self.account_required(&user, provider), provider, more);
        CallError { call_id: Some(approval.call_id), ..error }
    }

    /// Returns the error of a call whose approval is not decided, or whose account is not connected.
    pub(super) fn still_awaiting(&self, record: &CallRecord) -> Option<CallError> {
        if record.status != CallStatus::AwaitingApproval {
            return None;
        }
        let decision = record.decision.as_ref();
        let approval = decision.and_then(|decision| decision.approval_id);
        let details = json!({"approval_id": approval, "call_id": record.id()});
        let error = match decision.and_then(|decision| decision.account.as_ref()) {
            Some(provider) => {
                let user = AccountUser::from(&*record.invocation.principal);
                waiting(self.account_required(&user, provider), provider, details)
            }
            None => CallError::new(ErrorCode::ApprovalRequired, "the call still waits for approval")
                .with_details(details),
        };
        Some(CallError { call_id: Some(record.id()), ..error })
    }

    fn account_required(&self, user: &AccountUser, provider: &str) -> CallError {
        match self.secrets.accounts() {
            Some(accounts) => accounts.required(user, provider),
            None => account::account_required(user, provider, &account::connect_path(provider)),
        }
    }
}

/// Returns whether a call has ended or waits.
fn pauses(record: &CallRecord) -> bool {
    record.status.is_final() || record.status == CallStatus::AwaitingApproval
}

/// Returns the provider of an error, if its person can connect an account there.
fn provider(error: &CallError) -> Option<String> {
    let details = error.details.as_ref()?;
    details.get("url")?;
    details.get("provider")?.as_str().map(str::to_owned)
}

/// Returns the error of a call that is stored: a caller that repeats it would run it twice.
fn waiting(mut error: CallError, provider: &str, more: Value) -> CallError {
    let url = error.details.as_ref().and_then(|details| details.get("url")).and_then(Value::as_str);
    if let Some(url) = url {
        error.message = format!(
            "the call waits for your account at `{provider}`; connect it at {url}, and the call runs by itself"
        );
    }
    if let (Some(Value::Object(details)), Value::Object(more)) = (error.details.as_deref_mut(), more) {
        details.extend(more);
    }
    error
}
