//! What a call of an answer becomes: a call of a bound tool, or an error that the model reads.

use std::sync::Arc;

use haft_core::agent::ToolExecution;
use haft_core::coerce::coerce;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use haft_core::run::WaitingStep;
use serde_json::{Map, Value};

use super::host::BoundTool;
use super::progress::CallState;
use super::tool_lookup::find;

/// A call of an answer that has no result.
#[derive(Debug)]
pub(super) struct PlannedCall {
    pub(super) index: u32,
    /// The id that the model gave it.
    pub(super) id: String,
    /// The name that the model used.
    pub(super) name: String,
    pub(super) target: Target,
    /// The step that says that it waits for a person.
    pub(super) waiting: Option<WaitingStep>,
}

#[derive(Debug)]
pub(super) enum Target {
    Tool { tool: Arc<BoundTool>, args: Map<String, Value> },
    Rejected { tool: Option<String>, args: Value, error: CallError },
}

impl PlannedCall {
    /// Plans a call of an answer.
    pub(super) fn new(state: CallState, tools: &[BoundTool]) -> Self {
        let CallState { index, call, waiting, .. } = state;
        let target = match find(tools, &call.name) {
            Ok(tool) => match arguments(tool, call.arguments.clone()) {
                Ok(args) => Target::Tool { tool: Arc::new(tool.clone()), args },
                Err(error) => {
                    Target::Rejected { tool: Some(tool.qualified.clone()), args: call.arguments, error }
                }
            },
            Err(error) => Target::Rejected { tool: None, args: call.arguments, error },
        };
        Self { index, id: call.id, name: call.name, target, waiting }
    }

    /// Returns whether calls after it may run at the same time.
    fn is_pure(&self) -> bool {
        match &self.target {
            Target::Tool { tool, .. } => tool.is_pure,
            Target::Rejected { .. } => true,
        }
    }
}

/// Reads the arguments of a call. The pipeline validates them.
fn arguments(tool: &BoundTool, arguments: Value) -> Result<Map<String, Value>, CallError> {
    if let Value::String(text) = &arguments
        && let Some(reason) = broken_json(text)
    {
        let message =
            format!("the arguments are not valid JSON: {reason}; send them again as one JSON object");
        return Err(CallError::new(ErrorCode::InvalidArguments, message));
    }
    match coerce(&tool.definition.input_schema, arguments) {
        Value::Object(args) => Ok(args),
        other => {
            let found = excerpt(&other.to_string(), 60);
            let message = format!("the arguments must be a JSON object, found {found}");
            Err(CallError::new(ErrorCode::InvalidArguments, message))
        }
    }
}

/// Returns what is wrong with a text that starts as JSON; other texts may be the value of a single argument.
fn broken_json(text: &str) -> Option<String> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    match (values.next()?, values.next()) {
        (Ok(_), None) => None,
        (Ok(_), Some(_)) => Some("there is more than one JSON value, or text after it".to_owned()),
        (Err(error), _) => Some(error.to_string()),
    }
}

/// Splits calls into batches that run one after the other: pure calls run together, and every other call alone.
pub(super) fn batches(calls: Vec<PlannedCall>, execution: ToolExecution) -> Vec<Vec<PlannedCall>> {
    let mut batches: Vec<Vec<PlannedCall>> = Vec::new();
    let mut is_open = false;
    for call in calls {
        let joins = match execution {
            ToolExecution::Sequential => false,
            ToolExecution::ParallelSafe => call.is_pure(),
        };
        match batches.last_mut() {
            Some(batch) if joins && is_open => batch.push(call),
            _ => batches.push(vec![call]),
        }
        is_open = joins;
    }
    batches
}

#[cfg(test)]
mod tests {
    use haft_core::id::ToolId;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::model::{ToolCall, ToolDefinition};

    fn tool(name: &str, is_pure: bool) -> BoundTool {
        BoundTool {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: String::new(),
                input_schema: json!({"properties": {"query": {"type": "string"}}, "required": ["query"]}),
            },
            id: ToolId(Uuid::nil()),
            qualified: format!("b:{name}@1.0.0"),
            is_pure,
            concurrency_group: "default".to_owned(),
            max_concurrency: 1,
        }
    }

    fn planned(names: &[&str]) -> Vec<PlannedCall> {
        let tools = [tool("read", true), tool("write", false)];
        let state = |(index, name): (u32, &&str)| CallState {
            index,
            call: ToolCall {
                id: index.to_string(),
                name: (*name).to_owned(),
                arguments: json!({}),
                proof: None,
            },
            has_result: false,
            waiting: None,
        };
        (0..).zip(names).map(|entry| PlannedCall::new(state(entry), &tools)).collect()
    }

    #[test]
    fn an_impure_call_is_a_barrier() {
        let check = |names: &[&str], execution, expected: &[&[u32]]| {
            let found = batches(planned(names), execution);
            let found: Vec<Vec<u32>> =
                found.iter().map(|batch| batch.iter().map(|call| call.index).collect()).collect();
            assert_eq!(found, expected, "{names:?}");
        };
        let calls = ["read", "unknown", "write", "write", "read", "read", "write"];
        check(&calls, ToolExecution::ParallelSafe, &[&[0, 1], &[2], &[3], &[4, 5], &[6]]);
        check(&["read", "read"], ToolExecution::Sequential, &[&[0], &[1]]);
        check(&[], ToolExecution::ParallelSafe, &[]);
    }

    #[test]
    fn broken_arguments_are_explained() {
        let tool = tool("read", true);
        let read = |value: Value| arguments(&tool, value).map_err(|error| error.message);
        let query = |text: &str| Ok(json!({"query": text}).as_object().unwrap().clone());
        assert_eq!(read(json!({"q": "x"})), query("x"));
        assert_eq!(read(json!("Oslo")), query("Oslo"));
        for (text, expected) in [
            (
                r#"{"query": "#,
                "not valid JSON: EOF while parsing a value at line 1 column 10; send them again",
            ),
            (r#"{"query": "a"}{"query": "b"}"#, "there is more than one JSON value"),
            (r#"{"query": "a"} please"#, "more than one JSON value, or text after it"),
        ] {
            let error = read(json!(text)).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
