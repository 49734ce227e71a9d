//! Checks the outcome of a tool against its size limit and its output schema.

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use serde_json::{Value, json};

use crate::registry::CompiledTool;

/// The maximum size of an error message in bytes.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;

/// Returns the content blocks if they are within the limit. Otherwise a success becomes an error, because the value
/// alone would be incomplete; an error stays as it is.
pub(super) fn check_content(plan: &CompiledTool, blocks: Vec<Value>, outcome: &mut Outcome) -> Vec<Value> {
    let max = plan.spec.execution.limits.max_response_bytes;
    let blocks = Value::Array(blocks);
    if !fits(&blocks, max) {
        if outcome.is_ok() {
            let message = format!("the content exceeds `max_response_bytes` ({max} bytes)");
            *outcome = Err(CallError::new(ErrorCode::TooLarge, message));
        }
        return Vec::new();
    }
    match blocks {
        Value::Array(blocks) => blocks,
        _ => Vec::new(),
    }
}

/// Turns a value that is too large or does not match the output schema into an error, and limits the size of errors.
pub(super) fn check(plan: &CompiledTool, outcome: &mut Outcome) {
    match outcome {
        Ok(value) => {
            if let Err(error) = check_value(plan, value) {
                *outcome = Err(error);
            }
        }
        Err(error) => shorten(plan, error),
    }
}

/// Limits the size of an error, whose texts may come from a remote server.
fn shorten(plan: &CompiledTool, error: &mut CallError) {
    for text in [Some(&mut error.message), error.for_model.as_mut()].into_iter().flatten() {
        if text.len() > MAX_MESSAGE_BYTES {
            *text = excerpt(text, MAX_MESSAGE_BYTES / 4);
        }
    }
    let max = plan.spec.execution.limits.max_response_bytes;
    error.details = error.details.take().filter(|details| fits(details, max));
}

fn check_value(plan: &CompiledTool, value: &Value) -> Result<(), CallError> {
    let max = plan.spec.execution.limits.max_response_bytes;
    if !fits(value, max) {
        let message = format!("the value exceeds `max_response_bytes` ({max} bytes)");
        return Err(CallError::new(ErrorCode::TooLarge, message));
    }
    plan.output.check(value).map_err(|violations| {
        let first = violations.first().map_or("", |violation| violation.message.as_str());
        let message = format!("the output does not match the output schema: {first}");
        CallError::new(ErrorCode::InvalidOutput, message)
            .with_details(json!({"violations": violations}))
            .for_model("the tool returned an unexpected result")
    })
}

/// Returns whether the JSON of a value has at most this many bytes, not counting escapes and most digits. It stops
/// counting as soon as the limit is exceeded.
pub(crate) fn fits(value: &Value, max: u64) -> bool {
    let mut left = max;
    let mut pending = Vec::new();
    let mut next = Some(value);
    while let Some(value) = next {
        let size = match value {
            Value::Null | Value::Bool(_) => 4,
            // A lower bound, so that a value never counts as larger than the JSON it was read from.
            Value::Number(_) => 1,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                pending.extend(items);
                items.len() + 1
            }
            Value::Object(map) => {
                pending.extend(map.values());
                map.keys().map(|key| key.len() + 4).sum::<usize>() + 1
            }
        };
        match left.checked_sub(size as u64) {
            Some(rest) => left = rest,
            None => return false,
        }
        next = pending.pop();
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_estimated_without_serialising() {
        let value = json!({"a": ["x".repeat(100), 1, null], "b": {"c": true}});
        assert!(fits(&value, 140));
        assert!(!fits(&value, 100));
        assert!(!fits(&json!(vec![0; 1000]), 999));
        let text = r#"{"a":[1,-2.5,true,null,"x\n"],"b":{}}"#;
        assert!(fits(&serde_json::from_str(text).unwrap(), text.len() as u64));
    }
}
