//! Approvals: who may decide about a call, and what a decision does.

use std::sync::Arc;

use haft_core::approval::{Approval, ApprovalCause, ApprovalStatus, CannotDecide, Remember};
use haft_core::call::CallRecord;
use haft_core::id::{ApprovalId, CallId};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::policy::Approvers;
use haft_core::principal::Principal;
use haft_core::secret::scrub_text;
use haft_core::token::Role;
use haft_runtime::pipeline::{bound_defaults, check_args, content_digest};
use haft_runtime::policy::Policy;
use haft_runtime::registry::{CompiledTool, Entry};
use haft_store::ApprovalDecision;
use serde_json::{Map, Value};

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::events::sees_approvals_of_others;
use crate::identity::Identity;

/// The longest reason of a denial, in characters.
const MAX_REASON: usize = 1000;

/// The largest preview in bytes.
const MAX_PREVIEW_BYTES: usize = 8 * 1024;

/// Returns what will run if a call is approved, with secrets masked, if its tool is still the one that was requested.
pub async fn preview(app: &Context, approval: &Approval) -> Option<String> {
    if approval.status != ApprovalStatus::Waiting {
        return None;
    }
    let CurrentCall { plan, .. } = current_call(app, approval).await.ok().flatten()?;
    let mut text = plan.prepared.preview(approval.args.as_object()?)?;
    scrub_text(&mut text, &plan.literals);
    if text.len() > MAX_PREVIEW_BYTES {
        text.truncate(text.floor_char_boundary(MAX_PREVIEW_BYTES - '…'.len_utf8()));
        text.push('…');
    }
    Some(text)
}

/// Returns whether an error is that of a call which is stored, and waits for a decision or an account.
pub fn is_waiting(error: &ServiceError) -> bool {
    let waits = matches!(error.code, ErrorCode::ApprovalRequired | ErrorCode::CredentialRequired);
    let approval = error.details.as_ref().and_then(|details| details.get("approval_id"));
    waits && error.call_id.is_some() && approval.is_some()
}

/// Returns whether the error of a call is that of one which is stored, and waits for a decision or an account.
pub fn is_waiting_call(error: &CallError) -> bool {
    error.code == ErrorCode::ApprovalRequired || is_waiting_for_account(error)
}

fn is_waiting_for_account(error: &CallError) -> bool {
    let approval = error.details.as_ref().and_then(|details| details.get("approval_id"));
    error.code == ErrorCode::CredentialRequired && approval.is_some()
}

/// Returns whether a caller may decide about a waiting call.
pub fn may_decide(app: &Context, approval: &Approval, viewer: &Principal) -> bool {
    approval.status == ApprovalStatus::Waiting && check_approver(app, approval, viewer).is_ok()
}

/// Checks whether a principal may decide: the rule that asks for the approval may name its approvers.
pub fn check_approver(app: &Context, approval: &Approval, approver: &Principal) -> Result<(), CannotDecide> {
    let policy = app.policy().handle().load();
    let approvers = approvers(&policy, approval);
    approval.check_approver(approver, approvers, app.settings().approvals.four_eyes)
}

/// Returns the principal whose approvals a caller sees; `None` for all of the tenant.
pub fn seen_requester(identity: &Identity) -> Option<String> {
    (!sees_approvals_of_others(identity)).then(|| identity.id().to_string())
}

/// Returns the approvers that the rule names, if a rule asks for the approval.
fn approvers<'p>(policy: &'p Policy, approval: &Approval) -> Option<&'p Approvers> {
    match &approval.cause {
        ApprovalCause::Rule(rule) => policy.approvers(&approval.requested_by.tenant, rule),
        ApprovalCause::RequiresConfirmation | ApprovalCause::ElevatedPolicy | ApprovalCause::Account(_) => {
            None
        }
    }
}

/// Finds an approval that the caller sees.
pub async fn find(app: &Context, identity: &Identity, id: &str) -> Result<Approval, ServiceError> {
    let missing = || ServiceError::not_found("approval", id);
    let parsed: ApprovalId = id.parse().map_err(|_| missing())?;
    let approval = app.store().approvals().get(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    if !sees_approvals_of_others(identity) && !identity.owns_of(&approval.requested_by) {
        return Err(missing());
    }
    Ok(approval)
}

/// Approves a call, on whatever surface.
pub async fn approve(
    app: &Context,
    identity: &Identity,
    approval: &Approval,
    args: Option<Map<String, Value>>,
    remember: Option<Remember>,
) -> Result<Approval, ServiceError> {
    let Some(CurrentCall { plan: current, record, .. }) = current_call(app, approval).await? else {
        return Err(outdated(app, identity, approval).await);
    };
    let args = match args {
        Some(args) => {
            let mut args = Value::Object(args);
            let bound = bound_defaults(&current, &approval.requested_by.tenant, record.invocation.mode).await;
            check_args(&current, &bound, &mut args)
                .map_err(|error| ServiceError { of_call: false, ..error.into() })?;
            Some(args)
        }
        None => None,
    };
    let cause = covered_cause(app, identity, approval, args.as_ref(), remember).await?;
    let decision = ApprovalDecision::Approve { args, remember, cause };
    decide(app, identity, approval, decision, "approval.approve").await
}

/// What a person decided about a call.
pub enum PersonDecision {
    /// It runs, with other arguments if there are some.
    Approve(Option<Map<String, Value>>),
    /// It never runs.
    Deny(Option<String>),
}

/// Decides about a call for another surface; returns the call.
pub async fn decide_call(
    app: &Context,
    identity: &Identity,
    id: &str,
    decision: PersonDecision,
) -> Result<CallId, ServiceError> {
    let approval = approvable(app, identity, id).await?;
    match decision {
        PersonDecision::Approve(args) => {
            approve(app, identity, &approval, args, None).await?;
        }
        PersonDecision::Deny(reason) => {
            deny(app, identity, &approval, reason).await?;
        }
    }
    Ok(approval.call_id)
}

/// Returns why the call needs approval as it would run now, and checks that the approver may decide that, too: the rules
/// may have changed since the call was requested, and the approver may have changed its arguments.
async fn covered_cause(
    app: &Context,
    identity: &Identity,
    approval: &Approval,
    args: Option<&Value>,
    remember: Option<Remember>,
) -> Result<Option<ApprovalCause>, ServiceError> {
    let Some(call) = current_call(app, approval).await? else {
        return Err(outdated(app, identity, approval).await);
    };
    let args = args.unwrap_or(&approval.args);
    let cause = app.pipeline().current_cause(&call.record, &call.entry.tool, &call.plan, args);
    let cause = cause.map_err(|error| ServiceError { of_call: false, ..error.into() })?;
    let forbidden = |error: CannotDecide| ServiceError::new(ErrorCode::Forbidden, error.to_string());
    let covered = Approval { cause: cause.clone().unwrap_or(approval.cause.clone()), ..approval.clone() };
    check_approver(app, &covered, identity).map_err(forbidden)?;
    if let Some(remember) = remember {
        let policy = app.policy().handle().load();
        covered.check_remember(identity, approvers(&policy, &covered), remember).map_err(forbidden)?;
    }
    Ok(cause)
}

/// Denies a call, on whatever surface.
pub async fn deny(
    app: &Context,
    identity: &Identity,
    approval: &Approval,
    reason: Option<String>,
) -> Result<Approval, ServiceError> {
    if reason.as_ref().is_some_and(|reason| reason.chars().count() > MAX_REASON) {
        return Err(ServiceError::bad_request(format!(
            "`reason` exceeds the limit of {MAX_REASON} characters"
        )));
    }
    let reason = reason.map(|reason| reason.trim().to_owned()).filter(|reason| !reason.is_empty());
    decide(app, identity, approval, ApprovalDecision::Deny { reason }, "approval.deny").await
}

/// Finds an approval that the caller may decide.
pub async fn approvable(app: &Context, identity: &Identity, id: &str) -> Result<Approval, ServiceError> {
    identity.require(Role::Caller)?;
    let approval = find(app, identity, id).await?;
    check_approver(app, &approval, identity)
        .map_err(|error| ServiceError::new(ErrorCode::Forbidden, error.to_string()))?;
    Ok(approval)
}

/// Forgets a remembered approval: later calls ask again.
pub async fn forget_grant(app: &Context, identity: &Identity, id: &str) -> Result<(), ServiceError> {
    identity.require(Role::Caller)?;
    let missing = || ServiceError::not_found("remembered approval", id);
    let parsed: ApprovalId = id.parse().map_err(|_| missing())?;
    let principal = seen_requester(identity);
    if !app.store().approvals().revoke_grant(&identity.tenant, parsed, principal.as_deref()).await? {
        return Err(missing());
    }
    audit::note(identity, "approval_grant.delete", id);
    Ok(())
}

async fn decide(
    app: &Context,
    identity: &Identity,
    approval: &Approval,
    decision: ApprovalDecision,
    action: &str,
) -> Result<Approval, ServiceError> {
    audit::note(identity, action, &approval.id.to_string());
    Ok(app.store().approvals().decide(approval.id, identity, decision).await?)
}

/// Approves a call with its own arguments, if its tool is still the one that was shown.
pub async fn approve_as(
    app: &Context,
    identity: &Identity,
    approval: &Approval,
    remember: Option<Remember>,
) -> Result<(), ServiceError> {
    let cause = covered_cause(app, identity, approval, None, remember).await?;
    let decision = ApprovalDecision::Approve { args: None, remember, cause };
    app.store().approvals().decide(approval.id, identity, decision).await?;
    Ok(())
}

/// Notes that the requester has the outcome of a call that was decided: the same call later is a new one.
pub async fn collect(app: &Context, record: &CallRecord) {
    let approval = record.decision.as_ref().and_then(|decision| decision.approval_id);
    let Some(approval) = approval else { return };
    if let Err(error) = app.store().approvals().collect(ApprovalId(approval)).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "a decision stays to be picked up");
    }
}

/// A call that waits, and what would run.
struct CurrentCall {
    record: CallRecord,
    entry: Arc<Entry>,
    plan: Arc<CompiledTool>,
}

/// Returns the call and the definition that would run, if it is still the one that was shown; an error if that is not
/// known, because the store is unavailable at the moment or the server stops.
async fn current_call(app: &Context, approval: &Approval) -> Result<Option<CurrentCall>, ServiceError> {
    let tenant = &approval.requested_by.tenant;
    let Some(record) = app.ledger().call(tenant, approval.call_id).await? else { return Ok(None) };
    let snapshot = app.registry().snapshot();
    let tool = snapshot.tool(tenant, approval.tool_id).map(|entry| snapshot.resolved(entry));
    drop(snapshot);
    let Some(tool) = tool else { return Ok(None) };
    let mode = record.invocation.mode;
    app.pipeline().compile(&tool, mode).await;
    let Ok(plan) = tool.entry.plan(mode.into(), app.registry().executors()) else { return Ok(None) };
    let is_same = match content_digest(&plan, tenant, mode).await {
        Ok(digest) => digest == approval.definition_hash,
        Err(error) if matches!(error.code, ErrorCode::StoreUnavailable | ErrorCode::Cancelled) => {
            return Err(ServiceError { of_call: false, ..error.into() });
        }
        // What the call runs was deleted or disabled.
        Err(_) => false,
    };
    Ok(is_same.then(|| CurrentCall { record, entry: Arc::clone(&tool.entry), plan }))
}

/// Ends an approval whose tool has changed, and returns the error.
async fn outdated(app: &Context, identity: &Identity, approval: &Approval) -> ServiceError {
    audit::note(identity, "approval.approve", &approval.id.to_string());
    match app.store().approvals().decide(approval.id, identity, ApprovalDecision::Outdate).await {
        Ok(_) => ServiceError::new(
            ErrorCode::Conflict,
            "the tool, or what it runs, was changed or deleted after the call was requested; the requester has to call again",
        ),
        Err(error) => error.into(),
    }
}
