//! The answer of a run as the content of one message.

use std::collections::HashMap;

use haft_agent::model::{ContentPart, ToolCall};
use haft_core::call::CallStatus;
use haft_core::outcome::CallError;
use haft_core::run::{AnswerStep, ResultStep, RunStatus, RunStep, StepBody, WaitingStep};
use serde_json::{Value, json};

/// What became of a call.
enum CallEnd<'a> {
    Ended(&'a ResultStep, f64),
    Waits(&'a WaitingStep),
}

/// Returns the blocks of an answer: texts, tool calls, and notes about what happened besides.
pub(super) fn blocks(steps: &[RunStep], status: RunStatus, error: Option<&CallError>) -> Value {
    let mut ends: HashMap<(u32, u32), CallEnd<'_>> = HashMap::new();
    for step in steps {
        match &step.body {
            StepBody::Result(result) => {
                ends.insert((result.answer, result.index), CallEnd::Ended(result, step.duration_ms));
            }
            StepBody::Waiting(waiting) => {
                ends.entry((waiting.answer, waiting.index)).or_insert(CallEnd::Waits(waiting));
            }
            StepBody::Answer(_)
            | StepBody::Decided(_)
            | StepBody::Shortened(_)
            | StepBody::Correction { .. } => {}
        }
    }
    let mut blocks = Vec::new();
    for step in steps {
        match &step.body {
            StepBody::Answer(answer) => answer_blocks(step.number, answer, &ends, status, &mut blocks),
            StepBody::Shortened(_) => {
                blocks.push(note("The conversation was shortened to fit the context window."));
            }
            StepBody::Correction { .. } => blocks.push(note("The model was asked to correct its answer.")),
            StepBody::Result(_) | StepBody::Waiting(_) | StepBody::Decided(_) => {}
        }
    }
    match status {
        RunStatus::Cancelled => blocks.push(note("Stopped.")),
        RunStatus::Error => {
            let message = error.map_or("unknown error", |error| error.message.as_str());
            blocks.push(note(&format!("The agent failed: {message}")));
        }
        RunStatus::Pending | RunStatus::Running | RunStatus::AwaitingApproval | RunStatus::Success => {}
    }
    Value::Array(blocks)
}

/// Returns a note.
pub fn note(text: &str) -> Value {
    json!({"type": "note", "text": text})
}

fn answer_blocks(
    number: u32,
    answer: &AnswerStep,
    ends: &HashMap<(u32, u32), CallEnd<'_>>,
    status: RunStatus,
    blocks: &mut Vec<Value>,
) {
    let parts: Vec<ContentPart> = serde_json::from_value(answer.content.clone()).unwrap_or_default();
    let mut index = 0;
    for part in parts {
        match part {
            ContentPart::Text { text } if text.trim().is_empty() => {}
            ContentPart::Text { text } => blocks.push(json!({"type": "text", "text": text})),
            ContentPart::Image { source } => blocks.push(json!({"type": "image", "source": source})),
            ContentPart::ToolCall(call) => {
                blocks.push(tool_use(&call, ends.get(&(number, index)), status));
                index += 1;
            }
            ContentPart::ToolResult(_) | ContentPart::Reasoning { .. } => {}
        }
    }
}

fn tool_use(call: &ToolCall, end: Option<&CallEnd<'_>>, status: RunStatus) -> Value {
    let mut block = json!({"type": "tool_use", "id": call.id, "name": call.name});
    let Some(fields) = block.as_object_mut() else { return block };
    let mut set = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
    match end {
        Some(CallEnd::Ended(result, duration)) => {
            set("tool", json!(result.tool));
            set("args", result.args.clone());
            set("status", json!(result.status));
            set("call_id", json!(result.call_id));
            set("duration_ms", json!(duration));
            if let Some(error) = &result.error {
                set("error", json!(error));
            }
        }
        Some(CallEnd::Waits(waiting)) => {
            set("tool", json!(waiting.tool));
            set("args", waiting.args.clone());
            let ended = status.is_final();
            set("status", json!(if ended { CallStatus::Cancelled } else { CallStatus::AwaitingApproval }));
            set("call_id", json!(waiting.call_id));
            set("approval_id", json!(waiting.approval_id));
        }
        None => {
            set("tool", Value::Null);
            set("args", call.arguments.clone());
            set("status", json!(CallStatus::Cancelled));
            set("call_id", Value::Null);
        }
    }
    block
}
