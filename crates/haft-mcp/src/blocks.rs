//! Recognizes values that are MCP content blocks.

use rmcp::model::ContentBlock;
use serde_json::Value;

/// Reads a value that is a content block or a list of content blocks. A tool returns an image or a file like this: `{"type": "image", "data": "…", "mimeType": "image/png"}`.
pub(crate) fn blocks(value: &Value) -> Option<Vec<ContentBlock>> {
    let one = std::slice::from_ref(value);
    let items = match value {
        Value::Object(_) => one,
        Value::Array(items) if !items.is_empty() => items,
        _ => return None,
    };
    items.iter().map(block).collect()
}

fn block(value: &Value) -> Option<ContentBlock> {
    // A `type` alone is not enough: many values have one.
    let has = |key: &str| value.get(key).is_some_and(Value::is_string);
    let is_block = match value.get("type")?.as_str()? {
        "text" => has("text") && value.as_object()?.keys().all(|key| TEXT_KEYS.contains(&key.as_str())),
        "image" | "audio" => has("data") && has("mimeType"),
        "resource" => value.get("resource").and_then(|r| r.get("uri")).is_some_and(Value::is_string),
        "resource_link" => has("uri") && has("name"),
        _ => false,
    };
    if is_block { serde_json::from_value(value.clone()).ok() } else { None }
}

/// The keys of a text block.
const TEXT_KEYS: [&str; 4] = ["type", "text", "annotations", "_meta"];
