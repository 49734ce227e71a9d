//! What went wrong with a guest, in words for the operator and the model.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::output::last_lines;
use haft_core::problem::excerpt;
use serde_json::{Value, json};
use wasmtime::{PoolConcurrencyLimitError, Trap};

use crate::compile::reason;
use crate::state::Refused;

/// How much of a tool's own message is kept.
const MESSAGE: usize = 4000;

/// What is known of a guest that stopped.
pub(crate) struct Remains<'a> {
    pub(crate) stderr: &'a str,
    pub(crate) stdout_overflowed: bool,
    pub(crate) refused: Option<Refused>,
    pub(crate) max_memory: usize,
    pub(crate) max_output: u64,
}

/// Turns an error of wasmtime to an outcome.
pub(crate) fn stopped(error: &wasmtime::Error, remains: &Remains<'_>) -> CallError {
    if remains.stdout_overflowed || is_fuel(error) {
        return too_much_output(remains.max_output);
    }
    if error.is::<PoolConcurrencyLimitError>() {
        let message = "all places for WebAssembly guests are taken";
        return CallError::new(ErrorCode::Overloaded, message);
    }
    if remains.refused == Some(Refused::Shared) {
        return no_memory_left();
    }
    let (what, details) = if remains.refused == Some(Refused::Own) {
        let limit = remains.max_memory / (1024 * 1024);
        (format!("it needed more memory than the {limit} MiB that it may have"), json!({"limit": "memory"}))
    } else if let Some(trap) = error.downcast_ref::<Trap>() {
        let text = trap.to_string();
        let text = text.strip_prefix("wasm trap: ").unwrap_or(&text);
        (format!("it stopped with a trap: {text}"), json!({"trap": text}))
    } else {
        (format!("it could not run: {}", reason(error)), json!({}))
    };
    failed(&what, details, remains.stderr)
}

/// A guest was refused memory that others have. It has changed nothing anywhere, so it may be called again.
fn no_memory_left() -> CallError {
    let text = "too many wasm tools use memory at once";
    CallError::new(
        ErrorCode::Overloaded,
        format!("{text}; call again later, or raise `wasm.total_memory_bytes` to allow it"),
    )
    .for_model(format!("{text}; try again later"))
}

/// A program that said by its status that it failed.
pub(crate) fn exited(status: i32, stderr: &str) -> CallError {
    failed(&format!("it exited with status {status}"), json!({"exit_code": status}), stderr)
}

/// A function that returned an error.
pub(crate) fn returned(error: &Value) -> CallError {
    let message = match error {
        Value::Null => "the tool returned an error".to_owned(),
        Value::String(text) => text.chars().take(MESSAGE).collect(),
        other => format!("the tool returned an error: {}", excerpt(&other.to_string(), MESSAGE)),
    };
    let failure = CallError::new(ErrorCode::ExecutionFailed, message);
    match error {
        Value::Null | Value::String(_) => failure,
        other => failure.with_details(json!({"error": other})),
    }
}

/// A guest gave more than it may.
pub(crate) fn too_much_output(limit: u64) -> CallError {
    let text = format!("the output has more than the {limit} bytes that are allowed");
    CallError::new(
        ErrorCode::TooLarge,
        format!("{text}; raise `execution.limits.max_response_bytes` to allow it"),
    )
    .for_model(text)
}

/// The arguments are larger than the guest may be given.
pub(crate) fn too_much_input(limit: u64) -> CallError {
    let text = format!("the arguments have more than the {limit} bytes that are allowed");
    CallError::new(
        ErrorCode::TooLarge,
        format!("{text}; raise `execution.limits.max_request_bytes` to allow it"),
    )
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

/// wasmtime does not make the type of this error public.
fn is_fuel(error: &wasmtime::Error) -> bool {
    error.chain().any(|cause| cause.to_string().contains("fuel allocated for hostcalls"))
}
