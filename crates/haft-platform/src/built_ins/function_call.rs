//! `function_call`: calls a registered function by name.
//!
//! If a tool runs the function, that tool is called through the pipeline, so that its schema, policy and limits apply and
//! the call is recorded. A function without a tool has no such rules and needs an elevated caller.

use std::sync::Arc;

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::implementation::Implementation;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_runtime::function::Functions;
use haft_runtime::registry::Entry;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::nested_call::call_tool;
use crate::context::Context;
use crate::late::Late;

const NAME: &str = "function_call";

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: NAME,
        description: "Call a function that is registered in the server, by name. Prefer a tool if one exists (use search_tools to \
                      find it). Returns the result of the function.",
        category: "tools",
        tags: &["functions", "call"],
        input: json!({
            "type": "object",
            "properties": {
                "function_name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Name of the registered function"},
                "args": {"type": "object", "description": "Arguments of the function"},
            },
            "required": ["function_name"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    spec.execution.timeout_ms = Some(60_000);
    Ok(spec)
}

/// Calls functions.
pub(super) struct FunctionCall {
    handle: Late<Context>,
    functions: Functions,
}

impl FunctionCall {
    pub(super) fn new(handle: Late<Context>, functions: Functions) -> Self {
        Self { handle, functions }
    }
}

#[derive(Deserialize)]
pub(super) struct Args {
    function_name: String,
    #[serde(default)]
    args: Map<String, Value>,
}

impl BuiltIn for FunctionCall {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let name = args.function_name.as_str();
        if name == NAME {
            return Err(CallError::new(
                ErrorCode::InvalidArguments,
                "`function_name`: `function_call` cannot call itself",
            ));
        }
        let app = self.handle.get()?;
        if let Some(tool) = tool_for_function(&app, call, name)? {
            return call_tool(call, NAME, tool, args.args).await;
        }
        let Some(function) = self.functions.get(name) else {
            let message = format!("function `{}` is not registered", excerpt(name, 100));
            return Err(CallError::new(ErrorCode::NotFound, message));
        };
        if !call.principal().elevated {
            let message = format!("function `{name}` has no tool, so calling it needs an elevated token");
            return Err(CallError::new(ErrorCode::ApprovalRequired, message));
        }
        function.run(call, &args.args).await
    }
}

/// Finds the tool that runs a function; several different tools are an error.
fn tool_for_function(app: &Context, call: &CallContext, name: &str) -> Result<Option<ToolRef>, CallError> {
    let snapshot = app.registry().snapshot();
    let runs_it = |entry: &&Arc<Entry>| {
        let definition = entry.definition(call.mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec);
        matches!(&definition.implementation, Implementation::Function(function) if function.function == name)
    };
    let mut tools: Vec<&Arc<Entry>> = snapshot.tools(call.tenant()).filter(runs_it).collect();
    let Some(first) = tools.iter().map(|entry| entry.tool.source).min() else { return Ok(None) };
    tools.retain(|entry| entry.tool.source == first);
    let same = |entry: &&Arc<Entry>| {
        tools.first().is_some_and(|first| {
            first.tool.bundle_id == entry.tool.bundle_id && first.tool.spec.name == entry.tool.spec.name
        })
    };
    if !tools.iter().all(same) {
        let candidates: Vec<&str> = tools.iter().map(|entry| &*entry.qualified).collect();
        let message =
            format!("several tools run function `{name}`; call one of them: {}", candidates.join(", "));
        return Err(
            CallError::new(ErrorCode::AmbiguousName, message).with_details(json!({"candidates": candidates}))
        );
    }
    let newest = tools.into_iter().max_by_key(|entry| (entry.tool.created_at, entry.tool.id));
    Ok(newest.map(|entry| ToolRef::Id(entry.tool.id)))
}
