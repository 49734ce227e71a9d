//! The state of a run, as workflows of agents read it.

use haft_core::large_result::ResultHandle;
use haft_core::run::{ResultStep, RunStep, StepBody};
use serde_json::{Map, Value, json};

use super::progress::content_of;
use crate::model::ContentPart;

/// How many of the newest outputs are listed.
const MAX_OUTPUTS: usize = 100;
/// The largest output that is repeated, in bytes of JSON; larger ones are given by their handles.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;

/// Returns the state of a run: `tool_outputs`, the results of calls in the order in which they ended; `context`, the last
/// value that a tool returned; and `last_agent_output`, the last text of the model, or that value if it has said nothing
/// since.
pub fn run_state(steps: &[RunStep]) -> Value {
    let (mut outputs, mut context, mut last) = (Vec::new(), Value::Null, Value::Null);
    for step in steps {
        match &step.body {
            StepBody::Result(result) => {
                let output = output(result);
                if let Some(value) = output.get("output") {
                    context = value.clone();
                    last = value.clone();
                }
                outputs.push(Value::Object(output));
            }
            StepBody::Answer(answer) => {
                let parts = content_of(answer);
                let texts = parts.iter().filter_map(|part| match part {
                    ContentPart::Text { text } if !text.trim().is_empty() => Some(text.as_str()),
                    _ => None,
                });
                let text = texts.collect::<Vec<_>>().join("\n");
                if !text.is_empty() {
                    last = Value::String(text);
                }
            }
            StepBody::Waiting(_)
            | StepBody::Decided(_)
            | StepBody::Shortened(_)
            | StepBody::Correction { .. } => {}
        }
    }
    let newest = outputs.split_off(outputs.len().saturating_sub(MAX_OUTPUTS));
    json!({"tool_outputs": newest, "context": context, "last_agent_output": last})
}

fn output(result: &ResultStep) -> Map<String, Value> {
    let mut entry = Map::new();
    let mut set = |key: &str, value: Value| entry.insert(key.to_owned(), value);
    set("name", json!(result.name));
    set("tool", json!(result.tool));
    set("call_id", json!(result.call_id));
    set("status", json!(result.status));
    if let Some(value) = &result.value {
        set("output", small(value, result));
    }
    if let Some(error) = &result.error {
        set("error", json!(error));
    }
    entry
}

fn small(value: &Value, result: &ResultStep) -> Value {
    match result.call_id {
        Some(call) if value.to_string().len() > MAX_OUTPUT_BYTES => {
            json!({"handle": ResultHandle::whole(call).to_string()})
        }
        _ => value.clone(),
    }
}
