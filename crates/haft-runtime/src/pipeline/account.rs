//! Calls whose person has to connect an account first: they fail, or wait like those that need approval.

use std::sync::Arc;

use haft_core::BoxFuture;
use haft_core::account::{self, AccountUser};
use haft_core::approval::{Approval, ApprovalCause};
use haft_core::call::{CallRecord, CallStatus};
use haft_core::outcome::{CallError, ErrorCode};
use serde_json::{Value, json};

use super::checks::awaiting_approval;
use super::{CheckedCall, Pipeline};

impl Pipeline {
    /// Checks that the person of a call has the accounts that it needs. One that waits is stored like one that needs
    /// approval, and runs when the account is connected. One that needs approval, too, does not wait for both.
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
            let may_wait = waits && self.waiting.is_some() && checked.needs_approval.is_none();
            match provider(&error).filter(|_| may_wait) {
                Some(provider) => {
                    checked.needs_approval = Some(ApprovalCause::Account(provider));
                    Ok(checked)
                }
                None => Err(self.reject(checked, error).await),
            }
        })
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
