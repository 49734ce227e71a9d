//! `search_tools`: a model finds the tool for its task.

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::Outcome;
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app_handle::AppHandle;
use crate::routes::search::MAX_QUERY;
use crate::search::Ranking;

/// How many tools are returned by default, and at most.
const DEFAULT_LIMIT: usize = 10;
const MAX_LIMIT: usize = 50;
/// The longest returned description, in characters.
const MAX_DESCRIPTION: usize = 1000;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "search_tools",
        description: "Search the tools on this server, best match first. Use it when none of your tools fits the task. Returns a \
                      list of callable tools, each with name, tool (the reference to call it by), description and input_schema.",
        category: "tools",
        tags: &["tools", "search", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "What the tool should do, in plain words, or a part of its name"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "Maximum number of tools; default 10"},
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
pub(super) struct SearchTools(pub(super) AppHandle);

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
        let matches = |entry: &haft_runtime::registry::Entry| {
            if args.bundle.as_deref().is_some_and(|bundle| bundle != entry.tool.bundle.as_str()) {
                return false;
            }
            snapshot.is_runnable(entry, call.mode)
        };
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let query = (args.query.as_str(), Ranking::PlainLanguage);
        let found = app.search().search(call.tenant(), query, limit, matches);
        let tools = found.iter().map(|found| {
            let (entry, spec) = (&found.entry, &found.entry.tool.spec);
            json!({
                "name": spec.name.as_str(),
                "tool": entry.qualified,
                "description": excerpt(&spec.description, MAX_DESCRIPTION),
                "input_schema": spec.input_schema,
            })
        });
        Ok(Value::Array(tools.collect()))
    }
}
