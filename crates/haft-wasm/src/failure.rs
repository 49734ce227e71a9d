//! Errors of guests, for the operator and the model.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::output::last_lines;
use haft_core::problem::excerpt;
use serde_json::{Value, json};
use wasmtime::{PoolConcurrencyLimitError, Trap};

use crate::compile::reason;
use crate::state::MemoryDenied;

/// How many characters of a tool's message are kept.
const MAX_MESSAGE_CHARS: usize = 4000;

/// The state of a stopped guest.
pub(crate) struct StopContext<'a> {
    pub(crate) stderr: &'a str,
    pub(crate) stdout_overflowed: bool,
    pub(crate) denied: Option<MemoryDenied>,
    pub(crate) max_memory: usize,
    pub(crate) max_output: u64,
}

/// Converts an error of wasmtime.
pub(crate) fn stopped(error: &wasmtime::Error, context: &StopContext<'_>) -> CallError {
    if context.stdout_overflowed || is_fuel(error) {
        return too_much_output(context.max_output);
    }
    if error.is::<PoolConcurrencyLimitError>() {
        let message = "all WebAssembly instances are in use";
        return CallError::new(ErrorCode::Overloaded, message);
    }
    if context.denied == Some(MemoryDenied::Shared) {
        return shared_memory_exhausted();
    }
    let (what, details) = if context.denied == Some(MemoryDenied::Own) {
        let limit = context.max_memory / (1024 * 1024);
        (format!("memory limit ({limit} MiB) exceeded"), json!({"limit": "memory"}))
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        let text = trap.to_string();
        let text = text.strip_prefix("wasm trap: ").unwrap_or(&text);
        (format!("trap: {text}"), json!({"trap": text}))
    } else {
        (format!("failed to run: {}", reason(error)), json!({}))
    };
    failed(&what, details, context.stderr)
}

/// The memory limit of all guests is reached. The guest had no effect yet, so the call can be retried.
fn shared_memory_exhausted() -> CallError {
    let text = "the memory limit of all wasm tools is reached";
    CallError::new(ErrorCode::Overloaded, format!("{text}; retry later, or raise `wasm.total_memory_bytes`"))
        .for_model(format!("{text}; retry later"))
}

/// A program exited with a nonzero status.
pub(crate) fn exited(status: i32, stderr: &str) -> CallError {
    failed(&format!("exited with status {status}"), json!({"exit_code": status}), stderr)
}

/// A function returned an error.
pub(crate) fn returned(error: &Value) -> CallError {
    let message = match error {
        Value::Null => "the tool returned an error".to_owned(),
        Value::String(text) => text.chars().take(MAX_MESSAGE_CHARS).collect(),
        other => format!("the tool returned an error: {}", excerpt(&other.to_string(), MAX_MESSAGE_CHARS)),
    };
    let failure = CallError::new(ErrorCode::ExecutionFailed, message);
    match error {
        Value::Null | Value::String(_) => failure,
        other => failure.with_details(json!({"error": other})),
    }
}

/// The output exceeds its limit.
pub(crate) fn too_much_output(limit: u64) -> CallError {
    let text = format!("output limit ({limit} bytes) exceeded");
    CallError::new(ErrorCode::TooLarge, format!("{text}; raise `execution.limits.max_response_bytes`"))
        .for_model(text)
}

/// The arguments exceed their limit.
pub(crate) fn too_much_input(limit: u64) -> CallError {
    let text = format!("argument limit ({limit} bytes) exceeded");
    CallError::new(ErrorCode::TooLarge, format!("{text}; raise `execution.limits.max_request_bytes`"))
        .for_model(text)
}

fn failed(what: &str, mut details: Value, stderr: &str) -> CallError {
    let last = last_lines(stderr);
    let message = if last.is_empty() { what.to_owned() } else { format!("{what}: {last}") };
    if let (Some(details), false) = (details.as_object_mut(), last.is_empty()) {
        details.insert("stderr".to_owned(), last.into());
    }
    CallError::new(ErrorCode::ExecutionFailed, message).with_details(details)
}

/// The text is the only criterion: wasmtime does not make the type of this error public.
fn is_fuel(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| cause.to_string().contains("fuel allocated for hostcalls"))
}
