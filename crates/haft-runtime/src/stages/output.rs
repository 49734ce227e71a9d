//! Checks what a tool returned against its limit and its output schema.

use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use serde_json::{Value, json};

use crate::registry::CompiledTool;

/// The most bytes of the message of a failure: more is an answer, and no reason.
const MAX_MESSAGE: usize = 64 * 1024;

/// Returns what came beside a value or an error, where it is within the limit. A value without what belongs to it would
/// tell half; an error stands for itself.
pub(super) fn beside(plan: &CompiledTool, blocks: Vec<Value>, outcome: &mut Outcome) -> Vec<Value> {
    let most = plan.spec.execution.limits.max_response_bytes;
    let blocks = Value::Array(blocks);
    if !fits(&blocks, most) {
        if outcome.is_ok() {
            let message = format!(
                "what came beside the value has more than the {most} bytes that `max_response_bytes` allows"
            );
            *outcome = Err(CallError::new(ErrorCode::TooLarge, message));
        }
        return Vec::new();
    }
    match blocks {
        Value::Array(blocks) => blocks,
        _ => Vec::new(),
    }
}

/// Turns a value that is too large, or does not fit the output schema, to a failure, and keeps a failure within bounds.
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

/// Servers may put into an error what they like.
fn shorten(plan: &CompiledTool, error: &mut CallError) {
    for text in [Some(&mut error.message), error.for_model.as_mut()].into_iter().flatten() {
        if text.len() > MAX_MESSAGE {
            *text = excerpt(text, MAX_MESSAGE / 4);
        }
    }
    let most = plan.spec.execution.limits.max_response_bytes;
    error.details = error.details.take().filter(|details| fits(details, most));
}

fn check_value(plan: &CompiledTool, value: &Value) -> Result<(), CallError> {
    let most = plan.spec.execution.limits.max_response_bytes;
    if !fits(value, most) {
        let message = format!("the value has more than the {most} bytes that `max_response_bytes` allows");
        return Err(CallError::new(ErrorCode::TooLarge, message));
    }
    plan.output.check(value).map_err(|violations| {
        let first = violations.first().map_or("", |violation| violation.message.as_str());
        let message = format!("the output does not fit the output schema: {first}");
        CallError::new(ErrorCode::InvalidOutput, message)
            .with_details(json!({"violations": violations}))
            .for_model("the tool returned an unexpected result")
    })
}

/// Tells whether the JSON of a value has at most so many bytes, give or take what escapes and numbers add; stops
/// counting as soon as it has more.
fn fits(value: &Value, most: u64) -> bool {
    let mut left = most;
    let mut pending = Vec::new();
    let mut next = Some(value);
    while let Some(value) = next {
        let size = match value {
            Value::Null | Value::Bool(_) => 4,
            // At least; so what was read from JSON is never counted as more than that had.
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
    fn sizes_are_counted_without_writing_them_out() {
        let value = json!({"a": ["x".repeat(100), 1, null], "b": {"c": true}});
        assert!(fits(&value, 140));
        assert!(!fits(&value, 100));
        assert!(!fits(&json!(vec![0; 1000]), 999));
        let text = r#"{"a":[1,-2.5,true,null,"x\n"],"b":{}}"#;
        assert!(fits(&serde_json::from_str(text).unwrap(), text.len() as u64));
    }
}
