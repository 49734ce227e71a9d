//! `function_call`: calls a function of the program by its name.
//!
//! A function that tools name is called through such a tool, by the one pipeline: its schema, policy, limits and record
//! hold as if the tool had been called. A function without a tool has no such rules, so an elevated caller is needed.

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

use super::late::Late;
use super::through::through_tool;
use crate::app::App;

const NAME: &str = "function_call";

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: NAME,
        description: "Call a function that is registered in the server program, by its name. Prefer a tool where one exists \
                      (search_tools finds it). Returns what the function returns.",
        category: "tools",
        tags: &["functions", "call"],
        input: json!({
            "type": "object",
            "properties": {
                "function_name": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The name under which the function is registered"},
                "args": {"type": "object", "description": "Its arguments"},
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
    late: Late,
    functions: Functions,
}

impl FunctionCall {
    pub(super) fn new(late: Late, functions: Functions) -> Self {
        Self { late, functions }
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
                "`function_name`: this function does not call itself",
            ));
        }
        let app = self.late.get()?;
        if let Some(tool) = tool_of(&app, call, name)? {
            return through_tool(&app, NAME, call, tool, args.args).await;
        }
        let Some(function) = self.functions.get(name) else {
            let message = format!("no function `{}` is registered in this program", excerpt(name, 100));
            return Err(CallError::new(ErrorCode::NotFound, message));
        };
        if !call.caller().elevated {
            let message =
                format!("no tool names the function `{name}`, so it needs a token that is elevated");
            return Err(CallError::new(ErrorCode::ApprovalRequired, message));
        }
        function.run(call, &args.args).await
    }
}

/// Finds the tool that stands for a function; several would be a choice that nobody has made.
fn tool_of(app: &App, call: &CallContext, name: &str) -> Result<Option<ToolRef>, CallError> {
    let snapshot = app.registry().snapshot();
    let names_it = |entry: &&Arc<Entry>| {
        let definition = entry.definition(call.mode.into()).map_or(&entry.tool.spec, |(_, spec)| spec);
        matches!(&definition.implementation, Implementation::Function(function) if function.function == name)
    };
    let mut found: Vec<&Arc<Entry>> = snapshot.tools(call.tenant()).filter(names_it).collect();
    let Some(first) = found.iter().map(|entry| entry.tool.source).min() else { return Ok(None) };
    found.retain(|entry| entry.tool.source == first);
    let same = |entry: &&Arc<Entry>| {
        found.first().is_some_and(|first| {
            first.tool.bundle_id == entry.tool.bundle_id && first.tool.spec.name == entry.tool.spec.name
        })
    };
    if !found.iter().all(same) {
        let candidates: Vec<&str> = found.iter().map(|entry| &*entry.qualified).collect();
        let message =
            format!("several tools are the function `{name}`; call one of them: {}", candidates.join(", "));
        return Err(
            CallError::new(ErrorCode::AmbiguousName, message).with_details(json!({"candidates": candidates}))
        );
    }
    let newest = found.into_iter().max_by_key(|entry| (entry.tool.created_at, entry.tool.id));
    Ok(newest.map(|entry| ToolRef::Id(entry.tool.id)))
}
