//! The checks of a call, and the errors of the pipeline.

use std::sync::Arc;
use std::time::Duration;

use haft_core::approval::{Approval, ApprovalCause};
use haft_core::catalog::StoreError;
use haft_core::coerce::{coerce, normalize_integers};
use haft_core::implementation::Kind;
use haft_core::invocation::Invocation;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::policy::{Decision, Effect};
use haft_core::principal::Principal;
use haft_core::runnable::{Mode, NotRunnable};
use haft_core::spec::{Policy, ToolSpec, Validation};
use haft_core::token::Role;
use haft_definition::defaults::ArgumentDefaults;
use haft_definition::export::{drop_nulls, for_alternatives};
use serde_json::{Value, json};

use crate::policy::{CallAncestors, agents_above};
use crate::registry::{CompiledTool, Entry, Registry};
use crate::retry;

/// Returns the surfaces and agents on whose behalf a call is made.
pub(super) fn above(invocation: &Invocation) -> CallAncestors<'_> {
    CallAncestors { surfaces: &invocation.lineage.surfaces, agents: agents_above(&invocation.principal) }
}

/// Returns the error of a call that exceeded its time. Its effects are unknown, so it is retryable only if a second call
/// does no harm.
pub(crate) fn timed_out(spec: &ToolSpec, allowed: Duration) -> CallError {
    let message = format!("`{}` timed out after {}", spec.name, haft_core::duration::format(allowed));
    CallError::new(ErrorCode::Timeout, message).retryable(retry::is_repeatable(spec))
}

pub(super) fn compiled(
    entry: &Entry,
    mode: Mode,
    registry: &Registry,
) -> Result<Arc<CompiledTool>, CallError> {
    entry.plan(mode.into(), registry.executors()).map_err(|problems| {
        let reason = haft_core::problem::join(&problems);
        entry.named_error(|tool| NotRunnable::NotReady.to_error(tool, Some(&reason)))
    })
}

/// Checks that the role of the principal may call tools at all.
pub(super) fn check_role(principal: &Principal) -> Result<(), CallError> {
    if principal.role >= Role::Caller {
        return Ok(());
    }
    let (required, role) = (Role::Caller.as_str(), principal.role.as_str());
    let message = format!("role `{required}` required; the token has `{role}`");
    let for_model =
        format!("this token can list tools, but not call them; use a token with the role `{required}`");
    let error = CallError::new(ErrorCode::Forbidden, message).for_model(for_model);
    Err(error.with_details(json!({"required_role": required})))
}

/// Checks that the principal's list of tools includes the tool.
pub(super) fn check_allow_list(entry: &Entry, principal: &Principal) -> Result<(), CallError> {
    if principal.allows(&entry.tool) {
        return Ok(());
    }
    Err(entry.named_error(|tool| {
        let message =
            format!("`{}` may not call `{tool}`: its list of tools does not include it", principal.name);
        CallError::new(ErrorCode::Forbidden, message)
            .for_model(format!("`{tool}` is not among the tools that may be called here"))
    }))
}

/// Returns the error of a call that a policy rule denies.
pub(super) fn policy_denied(rule: Option<&str>, reason: Option<&str>) -> CallError {
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    let rule = rule.map_or_else(|| "a policy rule".to_owned(), |rule| format!("the policy rule `{rule}`"));
    CallError::new(ErrorCode::PolicyDenied, format!("{rule} denies the call{reason}"))
        .for_model(format!("the call is not allowed{reason}"))
}

/// Returns why the tool itself asks for approval.
fn own_cause(spec: &ToolSpec) -> Option<ApprovalCause> {
    match spec.policy {
        Policy::Elevated => Some(ApprovalCause::ElevatedPolicy),
        _ if spec.requires_confirmation => Some(ApprovalCause::RequiresConfirmation),
        _ => None,
    }
}

/// Returns why a call needs approval after the rules and the tool's own flag; an error if a rule denies it.
pub(super) fn cause_of(
    decision: &Decision,
    spec: &ToolSpec,
    elevated: bool,
) -> Result<Option<ApprovalCause>, CallError> {
    let own = own_cause(spec);
    match (decision.with_tool(own.is_some(), elevated), &decision.rule) {
        (Effect::Allow, _) => Ok(None),
        (Effect::Deny, rule) => Err(policy_denied(rule.as_deref(), decision.reason.as_deref())),
        (Effect::Approve, Some(rule)) => Ok(Some(ApprovalCause::Rule(rule.to_string()))),
        (Effect::Approve, None) => Ok(own),
    }
}

/// Returns the error of a call that needs approval where approvals are unavailable.
pub(super) fn approval_impossible(tool: &str, cause: &ApprovalCause) -> CallError {
    let message = format!("{}: only an elevated token may call it", cause.reason(tool));
    CallError::new(ErrorCode::ApprovalRequired, message)
}

/// Returns the error of a call that waits for approval.
pub(super) fn awaiting_approval(approval: &Approval) -> CallError {
    let message = format!(
        "the call needs approval: {}; approve it with `haft approval approve {}`",
        approval.cause.reason(&approval.tool),
        approval.id
    );
    let model = format!(
        "a person has to approve this call first (approval {}); repeat the same call later to get its result",
        approval.id
    );
    let details = json!({
        "approval_id": approval.id,
        "call_id": approval.call_id,
        "expires_at": approval.expires_at,
    });
    let error = CallError::new(ErrorCode::ApprovalRequired, message).for_model(model).with_details(details);
    CallError { call_id: Some(approval.call_id), ..error }
}

/// Validates the arguments, after the names that models use are mapped back and, if the definition says so, values are
/// coerced. Omitted arguments get their defaults: those of the definition, then those of the bound tool.
pub fn check_args(plan: &CompiledTool, bound: &ArgumentDefaults, args: &mut Value) -> Result<(), CallError> {
    match plan.spec.execution.validation {
        Validation::None => {}
        Validation::Strict => validate_args(plan, bound, args)?,
        Validation::Coerce => {
            *args = coerce(&plan.input_schema, std::mem::take(args));
            validate_args(plan, bound, args)?;
        }
    }
    fill_defaults(plan, bound, args);
    Ok(())
}

fn validate_args(plan: &CompiledTool, bound: &ArgumentDefaults, args: &mut Value) -> Result<(), CallError> {
    plan.aliases.restore(args);
    let checked = match plan.input.check(args) {
        // In strict mode models send null for omitted arguments.
        Err(_) if drop_nulls(&plan.input_schema, args) => plan.input.check(args),
        checked => checked,
    };
    let checked = checked.or_else(|violations| {
        let fitting = for_alternatives(&plan.input_schema, args).find(|own| plan.input.check(own).is_ok());
        let fitting = fitting
            .or_else(|| without_defaults(plan, bound, args).filter(|own| plan.input.check(own).is_ok()));
        fitting.map(|own| *args = own).ok_or(violations)
    });
    if checked.is_ok() {
        normalize_integers(&plan.input_schema, args);
    }
    checked.map_err(|violations| {
        let list: Vec<_> = violations
            .iter()
            .map(|v| if v.path.is_empty() { v.message.clone() } else { format!("{}: {}", v.path, v.message) })
            .collect();
        CallError::new(ErrorCode::InvalidArguments, format!("invalid arguments: {}", list.join("; ")))
            .with_details(json!({"violations": violations}))
    })
}

/// Sets omitted arguments to their defaults, so that rules, approvers and records see the arguments that the tool runs
/// with.
pub(super) fn fill_defaults(plan: &CompiledTool, bound: &ArgumentDefaults, args: &mut Value) {
    fill_own_defaults(plan, args);
    if let Value::Object(map) = args {
        map.extend(bound.missing(map));
    }
}

fn fill_own_defaults(plan: &CompiledTool, args: &mut Value) {
    let Value::Object(map) = &mut *args else { return };
    let missing = plan.defaults.missing(map);
    if missing.is_empty() {
        return;
    }
    let given = (plan.spec.implementation.kind() == Kind::Mcp).then(|| map.clone());
    map.extend(missing);
    // An MCP server checks its arguments itself, and rejects a default that does not fit.
    if let Some(given) = given
        && plan.input.check(args).is_err()
    {
        *args = Value::Object(given);
    }
}

/// Returns the arguments without those that are equal to their defaults, which need not match the schema: the arguments
/// of a call that waited have been filled in before.
fn without_defaults(plan: &CompiledTool, bound: &ArgumentDefaults, args: &Value) -> Option<Value> {
    let args = args.as_object()?;
    let is_default = |(name, value): &(&String, &Value)| {
        plan.defaults.is_default(name, value) || bound.is_default(name, value)
    };
    if !args.iter().any(|arg| is_default(&arg)) {
        return None;
    }
    let own = args.iter().filter(|arg| !is_default(arg));
    Some(Value::Object(own.map(|(name, value)| (name.clone(), value.clone())).collect()))
}

pub(super) fn not_recorded(error: StoreError) -> CallError {
    let message = format!("the call could not be recorded: {}", cause(error));
    CallError::new(ErrorCode::StoreUnavailable, message).for_model("the call could not be recorded")
}

/// Returns the error of a call that was not run because it could not be recorded.
pub(super) fn ledger_unavailable(error: StoreError) -> CallError {
    let message = format!("call rejected: the ledger is unavailable ({})", cause(error));
    CallError::new(ErrorCode::StoreUnavailable, message)
        .for_model("the tool did not run because calls cannot be recorded; retry later")
}

fn cause(error: StoreError) -> String {
    match error {
        StoreError::Unavailable { action, source, .. } => format!("cannot {action}: {source}"),
        other => other.to_string(),
    }
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    // Whole microseconds: the measurement is not more precise.
    f64::from(u32::try_from(time.as_micros()).unwrap_or(u32::MAX)) / 1000.0
}
