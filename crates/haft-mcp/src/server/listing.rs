//! Writes tools as MCP lists them.

use std::sync::Arc;

use haft_core::implementation::{Implementation, Kind, ToolHints};
use haft_core::schema::RawSchema;
use haft_core::spec::ToolSpec;
use haft_runtime::registry::ToolOffer;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value};

/// How deep `x-mcp-header` is searched for in a schema.
const MAX_DEPTH: usize = 16;
/// Marks an argument that a request header repeats.
const HEADER_KEYWORD: &str = "x-mcp-header";

/// Writes a tool.
pub(super) fn tool(offer: &ToolOffer<'_>) -> Tool {
    let spec = &*offer.spec;
    let input = object_schema(spec.input_schema.value());
    let mut tool = Tool::new(offer.name.clone(), spec.description.clone(), Arc::new(input))
        .with_annotations(annotations(spec));
    if !spec.display_name.is_empty() {
        tool = tool.with_title(spec.display_name.clone());
    }
    let output = spec.output_schema.value();
    if describes_object(&output) {
        tool = tool.with_raw_output_schema(Arc::new(object_schema(output)));
    }
    tool
}

/// Returns a tool with only its arguments if headers repeat some of them (`x-mcp-header`).
pub(super) fn with_headers(name: &str, schema: &RawSchema) -> Option<Tool> {
    // Every call asks, and hardly any schema has such headers.
    if !schema.as_str().contains(HEADER_KEYWORD) {
        return None;
    }
    let Value::Object(schema) = schema.value() else { return None };
    has_header(schema.get("properties"), MAX_DEPTH).then(|| Tool::new(name.to_owned(), "", Arc::new(schema)))
}

fn has_header(properties: Option<&Value>, depth: usize) -> bool {
    let Some(Value::Object(properties)) = properties else { return false };
    depth > 0
        && properties.values().any(|property| {
            property.get(HEADER_KEYWORD).is_some() || has_header(property.get("properties"), depth - 1)
        })
}

/// Returns whether a schema describes an object: older clients accept no other structured content.
pub(super) fn describes_object(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("object")
}

/// Returns an object schema with properties: clients require both, even for tools without arguments.
fn object_schema(schema: Value) -> Map<String, Value> {
    let mut map = if let Value::Object(map) = schema { map } else { Map::new() };
    map.entry("type").or_insert_with(|| "object".into());
    map.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    map
}

fn annotations(spec: &ToolSpec) -> ToolAnnotations {
    let pure = spec.execution.is_pure;
    let method = method(spec);
    let is_read_only = pure
        || spec.tags.iter().any(|tag| tag == "read-only")
        || spec.implementation.kind() == Kind::FileRead
        || matches!(method, Some("GET" | "HEAD" | "OPTIONS"));
    let upstream = match &spec.implementation {
        Implementation::Mcp(mcp) => mcp.hints,
        _ => ToolHints::default(),
    };
    let mut hints = ToolAnnotations::new().read_only(is_read_only);
    if !is_read_only {
        // A tool that needs approval is worth a confirmation in the client, too.
        let is_destructive = upstream.destructive.unwrap_or(method != Some("POST"));
        hints = hints.destructive(spec.needs_approval() || is_destructive);
    } else if upstream.destructive.is_some() {
        hints.destructive_hint = upstream.destructive;
    }
    let is_idempotent = upstream.idempotent.unwrap_or(matches!(method, Some("PUT" | "DELETE")));
    let is_open_world = upstream
        .open_world
        .unwrap_or_else(|| matches!(spec.implementation.kind(), Kind::Http | Kind::Mcp) || spec.network);
    hints.idempotent(pure || is_idempotent).open_world(is_open_world)
}

/// Returns the HTTP method of a tool that sends a single request.
fn method(spec: &ToolSpec) -> Option<&str> {
    match &spec.implementation {
        Implementation::Http(http) if http.steps.is_empty() => Some(http.request.method.as_str()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(definition: &Value) -> ToolSpec {
        let mut whole = json!({"name": "t", "version": "1.0.0", "description": "d"});
        whole.as_object_mut().unwrap().extend(definition.as_object().unwrap().clone());
        serde_json::from_value(whole).unwrap()
    }

    #[test]
    fn annotations_follow_from_the_definition() {
        let check = |definition: Value, expected: Value| {
            let written = serde_json::to_value(annotations(&spec(&definition))).unwrap();
            assert_eq!(written, expected, "{definition}");
        };
        let function = json!({"type": "function", "function": "f"});
        check(
            json!({"implementation": function, "execution": {"is_pure": true}}),
            json!({"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false}),
        );
        check(
            json!({"implementation": function}),
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": false}),
        );
        check(
            json!({"implementation": {"type": "http", "method": "GET", "url": "https://a.b/"}}),
            json!({"readOnlyHint": true, "idempotentHint": false, "openWorldHint": true}),
        );
        check(
            json!({"implementation": {"type": "http", "method": "POST", "url": "https://a.b/"}}),
            json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": false, "openWorldHint": true}),
        );
        check(
            json!({"implementation": {"type": "http", "method": "DELETE", "url": "https://a.b/"}}),
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": true, "openWorldHint": true}),
        );
        check(
            json!({"implementation": {"type": "mcp", "server": "s", "tool_name": "t",
                "hints": {"destructive": false, "idempotent": true, "open_world": false}}}),
            json!({"readOnlyHint": false, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false}),
        );
        check(
            json!({"implementation": {"type": "mcp", "server": "s", "tool_name": "t"}, "tags": ["read-only"]}),
            json!({"readOnlyHint": true, "idempotentHint": false, "openWorldHint": true}),
        );
        check(
            json!({"implementation": {"type": "http", "method": "POST", "url": "https://a.b/"}, "policy": "elevated"}),
            json!({"readOnlyHint": false, "destructiveHint": true, "idempotentHint": false, "openWorldHint": true}),
        );
    }

    #[test]
    fn argument_headers_are_found_in_nested_properties() {
        let check = |schema: Value, expected: bool| {
            assert_eq!(with_headers("t", &RawSchema::from(schema.clone())).is_some(), expected, "{schema}");
        };
        let marked = json!({"type": "string", "x-mcp-header": "Region"});
        check(json!({"properties": {"region": marked}}), true);
        check(json!({"properties": {"place": {"properties": {"region": marked}}}}), true);
        check(json!({"properties": {"region": {"type": "string"}}}), false);
        check(json!({"$defs": {"region": marked}}), false);
        check(json!(true), false);
    }
}
