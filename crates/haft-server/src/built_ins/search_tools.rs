//! `search_tools`: a model finds the tool for its task.

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::Outcome;
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::late::Late;
use crate::routes::search;

/// How many tools come back where nobody says, and at most.
const USUAL: usize = 10;
const MAX_COUNT: usize = 50;
/// The most characters of a description that are shown.
const MAX_LENGTH: usize = 1000;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "search_tools",
        description: "Find tools on this server by words, best first. Use it when none of your tools fits the task. Returns a \
                      list of tools that can run, each with name, tool (to call it by), description and input_schema.",
        category: "tools",
        tags: &["tools", "search", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": search::MAX_QUERY, "description": "Words about what the tool should do, or a part of its name"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_COUNT, "description": "How many tools; 10 where it is left out"},
                "bundle": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Only tools of this bundle"},
            },
            "required": ["query"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "name": {"type": "string"}, "tool": {"type": "string"}, "description": {"type": "string"},
                    "input_schema": {"type": ["object", "boolean"]},
                },
                "required": ["name", "tool", "description", "input_schema"],
            },
        }),
    })
}

/// Finds tools.
pub(super) struct SearchTools(pub(super) Late);

#[derive(Deserialize)]
pub(super) struct Args {
    query: String,
    limit: Option<usize>,
    bundle: Option<String>,
}

impl BuiltIn for SearchTools {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let app = self.0.get()?;
        let snapshot = app.registry().snapshot();
        let wanted = |entry: &haft_runtime::registry::Entry| {
            if args.bundle.as_deref().is_some_and(|wanted| wanted != entry.tool.bundle.as_str()) {
                return false;
            }
            snapshot.is_runnable(entry, call.mode)
        };
        let found = search::find(&app, call.tenant(), &args.query, wanted);
        let shown = found.iter().take(args.limit.unwrap_or(USUAL).clamp(1, MAX_COUNT)).map(|entry| {
            let spec = &entry.tool.spec;
            json!({
                "name": spec.name.as_str(),
                "tool": entry.qualified,
                "description": excerpt(&spec.description, MAX_LENGTH),
                "input_schema": spec.input_schema,
            })
        });
        Ok(Value::Array(shown.collect()))
    }
}
