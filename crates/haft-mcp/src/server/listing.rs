//! Tools as MCP lists them.

use std::sync::Arc;

use haft_core::implementation::Kind;
use haft_core::spec::{Policy, ToolSpec};
use haft_runtime::registry::Offer;
use rmcp::ErrorData;
use rmcp::model::{ListToolsResult, Tool, ToolAnnotations};
use serde_json::{Map, Value};

/// How many tools are on one page of a list.
const PAGE: usize = 200;

/// Returns one page of a list; the cursor is what an earlier page told.
pub(super) fn page(tools: Vec<Tool>, cursor: Option<&str>) -> Result<ListToolsResult, ErrorData> {
    let start = match cursor {
        None => 0,
        Some(text) => text.parse().ok().filter(|start| *start <= tools.len()).ok_or_else(|| {
            ErrorData::invalid_params(
                "the cursor is not one that this server gave; list from the start",
                None,
            )
        })?,
    };
    let end = tools.len().min(start + PAGE);
    let next = (end < tools.len()).then(|| end.to_string());
    let tools = tools.into_iter().skip(start).take(PAGE).collect();
    Ok(ListToolsResult { next_cursor: next, ..ListToolsResult::with_all_items(tools) })
}

/// Writes a tool as MCP does.
pub(super) fn tool(offer: &Offer<'_>) -> Tool {
    let spec = offer.spec;
    let mut tool =
        Tool::new(offer.name.clone(), spec.description.clone(), Arc::new(object(&spec.input_schema)))
            .with_annotations(annotations(spec));
    if !spec.display_name.is_empty() {
        tool = tool.with_title(spec.display_name.clone());
    }
    if describes_object(&spec.output_schema) {
        tool = tool.with_raw_output_schema(Arc::new(object(&spec.output_schema)));
    }
    tool
}

/// Tells whether every value that fits a schema is an object: older clients know no other structured content.
pub(super) fn describes_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Clients insist on an object with properties, also where a tool takes no arguments.
fn object(schema: &Value) -> Map<String, Value> {
    let mut map = schema.as_object().cloned().unwrap_or_default();
    map.entry("type").or_insert_with(|| "object".into());
    map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    map
}

fn annotations(spec: &ToolSpec) -> ToolAnnotations {
    let pure = spec.execution.is_pure;
    let guarded = spec.policy == Policy::Elevated || spec.requires_confirmation;
    let reads = pure || spec.implementation.kind() == Kind::FileRead || is_get(spec);
    let mut hints = ToolAnnotations::new().read_only(reads);
    if !reads {
        // What an author lets nobody call unasked is worth a question in the client, too.
        hints = hints.destructive(guarded || spec.implementation.kind() != Kind::Http);
    }
    let outside = matches!(spec.implementation.kind(), Kind::Http | Kind::Mcp) || spec.network;
    hints.idempotent(pure).open_world(outside)
}

/// Tells whether a tool only asks a server, in a way that HTTP calls safe.
fn is_get(spec: &ToolSpec) -> bool {
    match &spec.implementation {
        haft_core::implementation::Implementation::Http(http) => {
            http.steps.is_empty() && matches!(http.request.method.as_str(), "GET" | "HEAD")
        }
        _ => false,
    }
}
