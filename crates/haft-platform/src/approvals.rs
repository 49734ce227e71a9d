//! Approvals: who may decide about a call, and what a decision does.

use std::sync::Arc;

use haft_core::approval::{Approval, ApprovalCause, ApprovalStatus, CannotDecide, Remember};
use haft_core::call::CallRecord;
use haft_core::hash;
use haft_core::id::{ApprovalId, CallId};
use haft_core::outcome::ErrorCode;
use haft_core::policy::Approvers;
use haft_core::principal::Principal;
use haft_core::secret::scrub_text;
use haft_core::token::Role;
use haft_runtime::pipeline::check_args;
use haft_runtime::policy::Policy;
use haft_runtime::registry::{CompiledTool, Entry};
use haft_store::ApprovalDecision;
use serde_json::{Map, Value};

use crate::audit;
use crate::error::ServiceError;
use crate::events::sees_approvals_of_others;
use crate::identity::Identity;
use crate::installation::Installation;

/// The longest reason of a denial, in characters.
const MAX_REASON: usize = 1000;

/// The largest preview in bytes.
const MAX_PREVIEW_BYTES: usize = 8 * 1024;

/// Returns what will run if a call is approved, with secrets masked, if its tool is still the one that was requested.
pub async fn preview(app: &Installation, approval: &Approval) -> Option<String> {
    if approval.status != ApprovalStatus::Waiting {
        return None;
    }
    let CurrentCall { plan, .. } = current_call(app, approval).await?;
    let mut text = plan.prepared.preview(approval.args.as_object()?)?;
    scrub_text(&mut text, &plan.literals);
    if text.len() > MAX_PREVIEW_BYTES {
        text.truncate(text.floor_char_boundary(MAX_PREVIEW_BYTES - '…'.len_utf8()));
        text.push('…');
    }
    Some(text)
}

/// Returns whether somebody may decide about a call that still waits.
pub fn may_decide(app: &Installation, approval: &Approval, viewer: &Principal) -> bool {
    approval.status == ApprovalStatus::Waiting && check_approver(app, approval, viewer).is_ok()
}

/// Checks whether a principal may decide: the rule that asks for the approval may name its approvers.
pub fn check_approver(
    app: &Installation,
    approval: &Approval,
    approver: &Principal,
) -> Result<(), CannotDecide> {
    let policy = app.policy().handle().load();
    let approvers = approvers(&policy, approval);
    approval.check_approver(approver, approvers, app.settings().approvals.four_eyes)
}

/// Returns the principal whose approvals somebody sees; `None` for all of the tenant.
pub fn seen_requester(identity: &Identity) -> Option<String> {
    (!sees_approvals_of_others(identity)).then(|| identity.id().to_string())
}

/// Returns the approvers that the rule names, if a rule asks for the approval.
fn approvers<'p>(policy: &'p Policy, approval: &Approval) -> Option<&'p Approvers> {
    match &approval.cause {
        ApprovalCause::Rule(rule) => policy.approvers(&approval.requested_by.tenant, rule),
        ApprovalCause::RequiresConfirmation | ApprovalCause::ElevatedPolicy => None,
    }
}

/// Finds an approval that the caller sees.
pub async fn find(app: &Installation, identity: &Identity, id: &str) -> Result<Approval, ServiceError> {
    let missing = || ServiceError::not_found("approval", id);
    let parsed: ApprovalId = id.parse().map_err(|_| missing())?;
    let approval = app.store().approval(&identity.tenant, parsed).await?.ok_or_else(missing)?;
    if !sees_approvals_of_others(identity) && approval.requested_by.id() != identity.id() {
        return Err(missing());
    }
    Ok(approval)
}

/// Approves a call, on whatever surface.
pub async fn approve(
    app: &Installation,
    identity: &Identity,
    approval: &Approval,
    args: Option<Map<String, Value>>,
    remember: Option<Remember>,
) -> Result<Approval, ServiceError> {
    let Some(CurrentCall { plan: current, .. }) = current_call(app, approval).await else {
        return Err(outdated(app, identity, approval).await);
    };
    let args = match args {
        Some(args) => {
            let mut args = Value::Object(args);
            check_args(&current, &mut args)
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
    app: &Installation,
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
    app: &Installation,
    identity: &Identity,
    approval: &Approval,
    args: Option<&Value>,
    remember: Option<Remember>,
) -> Result<Option<ApprovalCause>, ServiceError> {
    let Some(call) = current_call(app, approval).await else {
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
    app: &Installation,
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
pub async fn approvable(app: &Installation, identity: &Identity, id: &str) -> Result<Approval, ServiceError> {
    identity.require(Role::Caller)?;
    let approval = find(app, identity, id).await?;
    check_approver(app, &approval, identity)
        .map_err(|error| ServiceError::new(ErrorCode::Forbidden, error.to_string()))?;
    Ok(approval)
}

/// Forgets a remembered approval: later calls ask again.
pub async fn forget_grant(app: &Installation, identity: &Identity, id: &str) -> Result<(), ServiceError> {
    identity.require(Role::Caller)?;
    let missing = || ServiceError::not_found("remembered approval", id);
    let parsed: ApprovalId = id.parse().map_err(|_| missing())?;
    let principal = seen_requester(identity);
    if !app.store().revoke_grant(&identity.tenant, parsed, principal.as_deref()).await? {
        return Err(missing());
    }
    audit::note(identity, "approval_grant.delete", id);
    Ok(())
}

async fn decide(
    app: &Installation,
    identity: &Identity,
    approval: &Approval,
    decision: ApprovalDecision,
    action: &str,
) -> Result<Approval, ServiceError> {
    audit::note(identity, action, &approval.id.to_string());
    Ok(app.store().decide(approval.id, identity, decision).await?)
}

/// Approves a call with its own arguments, if its tool is still the one that was shown.
pub async fn approve_as(
    app: &Installation,
    identity: &Identity,
    approval: &Approval,
    remember: Option<Remember>,
) -> Result<(), ServiceError> {
    let cause = covered_cause(app, identity, approval, None, remember).await?;
    let decision = ApprovalDecision::Approve { args: None, remember, cause };
    app.store().decide(approval.id, identity, decision).await?;
    Ok(())
}

/// Notes that the requester has the outcome of a call that was decided: the same call later is a new one.
pub async fn collect(app: &Installation, record: &CallRecord) {
    let approval = record.decision.as_ref().and_then(|decision| decision.approval_id);
    let Some(approval) = approval else { return };
    if let Err(error) = app.store().collect_approval(ApprovalId(approval)).await {
        tracing::warn!(error = &error as &dyn std::error::Error, "a decision stays to be picked up");
    }
}

/// A call that waits, and what would run.
struct CurrentCall {
    record: CallRecord,
    entry: Arc<Entry>,
    plan: Arc<CompiledTool>,
}

/// Returns the call and the definition that would run, if it is still the one that was shown.
async fn current_call(app: &Installation, approval: &Approval) -> Option<CurrentCall> {
    let record = app.ledger().call(&approval.requested_by.tenant, approval.call_id).await.ok().flatten()?;
    let snapshot = app.registry().snapshot();
    let entry = snapshot.tool(&approval.requested_by.tenant, approval.tool_id)?;
    let tool = snapshot.resolved(entry);
    drop(snapshot);
    app.pipeline().compile(&tool, record.invocation.mode).await;
    let plan = tool.entry.plan(record.invocation.mode.into(), app.registry().executors()).ok()?;
    let is_same = hash::of_value(&*plan.spec).ok()? == approval.definition_hash;
    is_same.then(|| CurrentCall { record, entry: Arc::clone(&tool.entry), plan })
}

/// Ends an approval whose tool has changed, and returns the error.
async fn outdated(app: &Installation, identity: &Identity, approval: &Approval) -> ServiceError {
    audit::note(identity, "approval.approve", &approval.id.to_string());
    match app.store().decide(approval.id, identity, ApprovalDecision::Outdate).await {
        Ok(_) => ServiceError::new(
            ErrorCode::Conflict,
            "the tool was changed or deleted after the call was requested; the requester has to call again",
        ),
        Err(error) => error.into(),
    }
}
