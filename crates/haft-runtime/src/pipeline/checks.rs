//! The checks of a call, and the errors of the pipeline.

use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::coerce::{coerce, normalize_integers};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::runnable::{Mode, NotRunnable};
use haft_core::spec::{ToolSpec, Validation};
use haft_definition::export::{drop_nulls, for_alternatives};
use serde_json::{Value, json};

use crate::registry::{CompiledTool, Entry, Registry};
use crate::retry;

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

pub(super) fn authorise(plan: &CompiledTool, elevated: bool) -> Result<(), CallError> {
    if plan.spec.needs_approval() && !elevated {
        let field =
            if plan.spec.requires_confirmation { "requires_confirmation: true" } else { "policy: elevated" };
        let message = format!("`{}` has `{field}`: only an elevated token may call it", plan.spec.name);
        return Err(CallError::new(ErrorCode::ApprovalRequired, message));
    }
    Ok(())
}

/// Validates the arguments, after the names that models use are mapped back and, if the definition says so, values are
/// coerced.
pub(super) fn validate(plan: &CompiledTool, args: &mut Value) -> Result<(), CallError> {
    match plan.spec.execution.validation {
        Validation::None => return Ok(()),
        Validation::Strict => {}
        Validation::Coerce => *args = coerce(&plan.input_schema, std::mem::take(args)),
    }
    plan.aliases.restore(args);
    let checked = match plan.input.check(args) {
        // In strict mode models send null for omitted arguments.
        Err(_) if drop_nulls(&plan.input_schema, args) => plan.input.check(args),
        checked => checked,
    };
    let checked = checked.or_else(|violations| {
        let fitting = for_alternatives(&plan.input_schema, args).find(|own| plan.input.check(own).is_ok());
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
