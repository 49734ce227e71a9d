//! The checks that a call has to pass before it runs, and how their errors read.

use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::coerce::{coerce, whole_numbers};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::runnable::Mode;
use haft_core::spec::Validation;
use haft_definition::export::{drop_nulls, for_alternatives};
use serde_json::{Value, json};

use crate::registry::{CompiledTool, Entry, Registry};

pub(crate) fn too_late(tool: &str, allowed: Duration) -> CallError {
    let message = format!("`{tool}` took longer than {}", haft_core::duration::format(allowed));
    CallError::new(ErrorCode::Timeout, message)
}

pub(super) fn plan(entry: &Entry, mode: Mode, registry: &Registry) -> Result<Arc<CompiledTool>, CallError> {
    entry.plan(mode.into(), registry.executors()).map_err(|problems| {
        let why = haft_core::problem::join(&problems);
        haft_core::runnable::NotRunnable::NotReady.to_error(&entry.qualified, Some(&why))
    })
}

pub(super) fn authorise(plan: &CompiledTool, elevated: bool) -> Result<(), CallError> {
    if plan.spec.needs_approval() && !elevated {
        let message = format!("`{}` needs an approval, or a caller who is elevated", plan.spec.name);
        return Err(CallError::new(ErrorCode::ApprovalRequired, message));
    }
    Ok(())
}

/// Checks the arguments, and brings them to their shape first: back from what models are told, and further where the
/// definition says so.
pub(super) fn validate(plan: &CompiledTool, args: &mut Value) -> Result<(), CallError> {
    match plan.spec.execution.validation {
        Validation::None => return Ok(()),
        Validation::Strict => {}
        Validation::Coerce => *args = coerce(&plan.spec.input_schema, std::mem::take(args)),
    }
    plan.told.restore(args);
    let checked = match plan.input.check(args) {
        // Strict mode makes models send null for what they leave out.
        Err(_) if drop_nulls(&plan.spec.input_schema, args) => plan.input.check(args),
        checked => checked,
    };
    let checked = checked.or_else(|violations| {
        let fitting =
            for_alternatives(&plan.spec.input_schema, args).find(|own| plan.input.check(own).is_ok());
        fitting.map(|own| *args = own).ok_or(violations)
    });
    if checked.is_ok() {
        whole_numbers(&plan.spec.input_schema, args);
    }
    checked.map_err(|violations| {
        let list: Vec<_> = violations
            .iter()
            .map(|v| if v.path.is_empty() { v.message.clone() } else { format!("{}: {}", v.path, v.message) })
            .collect();
        CallError::new(
            ErrorCode::InvalidArguments,
            format!("the arguments do not fit the schema: {}", list.join("; ")),
        )
        .with_details(json!({"violations": violations}))
    })
}

pub(super) fn unrecorded(error: &StoreError) -> CallError {
    let message = format!("the call could not be recorded: {}", error.with_cause());
    CallError::new(ErrorCode::StoreUnavailable, message).for_model("the call could not be recorded")
}

/// What would leave no record does not run.
pub(super) fn unrecordable(error: &StoreError) -> CallError {
    let message = format!("no call is run, as none can be recorded at present: {}", error.with_cause());
    CallError::new(ErrorCode::StoreUnavailable, message)
        .for_model("the tool was not run, as calls cannot be recorded at present; try again later")
}

pub(crate) fn milliseconds(time: Duration) -> f64 {
    // Whole microseconds: more digits would only look exact.
    f64::from(u32::try_from(time.as_micros()).unwrap_or(u32::MAX)) / 1000.0
}
