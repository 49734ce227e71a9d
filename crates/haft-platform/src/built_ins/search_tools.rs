//! `search_tools`: a model finds the tool for its task.

use std::sync::Arc;

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::Outcome;
use haft_core::problem::excerpt;
use haft_core::spec::ToolSpec;
use haft_definition::export::estimate_tokens;
use haft_runtime::registry::{Entry, Snapshot};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::context::Context;
use crate::error::call_error;
use crate::late::Late;
use crate::search::{Ranking, SearchQuery};
use haft_search::MAX_QUERY;

/// How many tools are returned by default, and at most.
const DEFAULT_LIMIT: usize = 5;
const MAX_LIMIT: usize = 20;
/// The longest returned description and list of arguments, in characters.
const MAX_DESCRIPTION: usize = 200;
const MAX_ARGUMENTS: usize = 300;
/// The estimated number of tokens of a result above which the remaining tools are left out.
const MAX_TOKENS: usize = 2000;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "search_tools",
        description: "Search the tools on this server, best match first. Use it when none of your tools fits the task. Returns a \
                      short list of callable tools, each with name, tool (the reference to call it by), description and \
                      arguments in brief (`?` marks optional ones). Use describe_tool for the full input schema of a tool.",
        category: "tools",
        tags: &["tools", "search", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": MAX_QUERY, "description": "What the tool should do, in plain words, or a part of its name"},
                "limit": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "description": "Maximum number of tools; default 5"},
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
                    "arguments": {"type": "string"},
                },
                "required": ["name", "tool", "description", "arguments"],
            },
        }),
    })
}

/// Finds tools.
pub(super) struct SearchTools(pub(super) Late<Context>);

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
        let limit = args.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
        let query = SearchQuery {
            tenant: call.tenant().clone(),
            text: args.query,
            ranking: Ranking::PlainLanguage,
            limit,
            page: 0..limit,
        };
        let (bundle, mode, principal) = (args.bundle, call.mode, Arc::clone(call.principal()));
        let policy = Arc::clone(app.policy().handle());
        let accept = move |snapshot: &Snapshot, entry: &Entry| {
            bundle.as_deref().is_none_or(|bundle| bundle == entry.tool.bundle.as_str())
                && !entry.tool.is_built_in_copy()
                && policy.may_call_on_any_surface(&principal, &entry.tool)
                && snapshot.is_runnable(entry, mode)
        };
        let ranked = app.search().search(query, accept).await.map_err(call_error)?;
        let mut tokens = 0;
        let hits = ranked.tools.iter().map(|found| hit(&found.entry)).take_while(|hit| {
            tokens += estimate_tokens(hit);
            tokens <= MAX_TOKENS
        });
        Ok(Value::Array(hits.collect()))
    }
}

fn hit(entry: &Entry) -> Value {
    let spec = &entry.tool.spec;
    json!({
        "name": spec.name.as_str(),
        "tool": entry.qualified,
        "description": excerpt(first_paragraph(&spec.description).trim(), MAX_DESCRIPTION),
        "arguments": excerpt(&arguments(&spec.input_schema.value()), MAX_ARGUMENTS),
    })
}

fn first_paragraph(text: &str) -> &str {
    text.trim_start().split("\n\n").next().unwrap_or_default()
}

/// Writes the arguments of a schema in brief, required ones first: `city: string, days?: integer`.
fn arguments(schema: &Value) -> String {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let is_required = |name: &str| required.iter().any(|other| other == name);
    let (mut first, mut rest): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for (name, property) in properties {
        let (list, mark) = if is_required(name) { (&mut first, "") } else { (&mut rest, "?") };
        list.push(format!("{name}{mark}{}", type_suffix(property)));
    }
    first.append(&mut rest);
    first.join(", ")
}

/// Returns the type of a property with a colon: its values if it is a short choice, else its type; empty if it has none.
fn type_suffix(property: &Value) -> String {
    const MAX_CHOICES: usize = 6;
    let choices = property.get("enum").and_then(Value::as_array).filter(|list| list.len() <= MAX_CHOICES);
    if let Some(choices) = choices.filter(|list| list.iter().all(Value::is_string)) {
        let values: Vec<&str> = choices.iter().filter_map(Value::as_str).collect();
        return format!(": {}", excerpt(&values.join("|"), 60));
    }
    match property.get("type") {
        Some(Value::String(kind)) => format!(": {kind}"),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            format!(": {}", kinds.join("|"))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_written_in_brief() {
        let check = |schema: Value, expected: &str| assert_eq!(arguments(&schema), expected, "{schema}");
        check(
            json!({"properties": {
                "days": {"type": ["integer", "null"]}, "city": {"type": "string"},
                "unit": {"type": "string", "enum": ["c", "f"]}, "any": {}}, "required": ["city", "any"]}),
            "city: string, any, days?: integer|null, unit?: c|f",
        );
        check(json!({"type": "object"}), "");
        check(json!(true), "");
    }
}
