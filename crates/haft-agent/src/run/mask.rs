//! Masks values with sensitive names before a model reads them.

use haft_core::redact::is_sensitive;
use haft_core::secret::MASK;
use serde_json::{Map, Value};

/// Ends of names that look sensitive but are positions in a list or counts, which a model needs to go on.
const NEEDED: [&str; 6] =
    ["pagetoken", "nexttoken", "continuationtoken", "synctoken", "tokens", "tokencount"];

/// The types of JSON Schema: an object with one of them describes a value and has none.
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

/// Masks the texts and numbers under sensitive keys, such as `password`.
pub(super) fn mask_sensitive(value: &mut Value) {
    mask(value, false);
}

fn mask(value: &mut Value, sensitive: bool) {
    match value {
        Value::Object(map) => {
            let sensitive = sensitive && !is_schema(map);
            for (key, item) in map.iter_mut() {
                mask(item, sensitive || is_secret_key(key));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| mask(item, sensitive)),
        Value::String(text) if sensitive && !text.is_empty() => MASK.clone_into(text),
        Value::Number(_) if sensitive => *value = Value::String(MASK.to_owned()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_secret_key(key: &str) -> bool {
    is_sensitive(key) && {
        let plain: String =
            key.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
        !NEEDED.iter().any(|end| plain.ends_with(end))
    }
}

fn is_schema(map: &Map<String, Value>) -> bool {
    map.get("type").and_then(Value::as_str).is_some_and(|kind| TYPES.contains(&kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_and_positions_are_not() {
        let mut value = json!({
            "user": "ada", "password": "hunter2", "pin": 1, "api_key": 7, "empty_token": "",
            "next_page_token": "p2", "input_tokens": 5, "has_token": true,
            "credentials": {"login": "a", "list": ["b"]},
            "rows": [{"Authorization": "Bearer x"}],
            "properties": {"token": {"type": "string", "description": "The token"}},
        });
        mask_sensitive(&mut value);
        assert_eq!(
            value,
            json!({
                "user": "ada", "password": "***", "pin": 1, "api_key": "***", "empty_token": "",
                "next_page_token": "p2", "input_tokens": 5, "has_token": true,
                "credentials": {"login": "***", "list": ["***"]},
                "rows": [{"Authorization": "***"}],
                "properties": {"token": {"type": "string", "description": "The token"}},
            })
        );
    }
}
