//! Values that are made of MCP's content blocks: what haft serves as blocks, and what it must not take for them.

use rmcp::model::ContentBlock;
use serde_json::Value;

/// Reads a value that is made of content blocks: one, or a list of nothing else. So a tool returns an image or a
/// file as MCP spells it: `{"type": "image", "data": "…", "mimeType": "image/png"}`.
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
    // A word in `type` alone is no reason: many values have one.
    let has = |key: &str| value.get(key).is_some_and(Value::is_string);
    let whole = match value.get("type")?.as_str()? {
        "text" => has("text") && value.as_object()?.keys().all(|key| KEYS.contains(&key.as_str())),
        "image" | "audio" => has("data") && has("mimeType"),
        "resource" => value.get("resource").and_then(|r| r.get("uri")).is_some_and(Value::is_string),
        "resource_link" => has("uri") && has("name"),
        _ => false,
    };
    if whole { serde_json::from_value(value.clone()).ok() } else { None }
}

/// What a text block may have.
const KEYS: [&str; 4] = ["type", "text", "annotations", "_meta"];
