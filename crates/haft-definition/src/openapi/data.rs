//! Values that a schema quotes: examples, defaults, choices.

use haft_core::schema::walk::any_value;
use serde_json::Value;

/// Returns how many values there are in a value and how many bytes their texts have; stops counting at a bound.
pub(super) fn weight(value: &Value, most: usize) -> (usize, usize) {
    let (mut nodes, mut bytes) = (0_usize, 0_usize);
    let mut pending = vec![value];
    while let Some(value) = pending.pop() {
        nodes += 1;
        match value {
            Value::String(text) => bytes += text.len(),
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => {
                bytes += map.keys().map(String::len).sum::<usize>();
                pending.extend(map.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes += 8,
        }
        if nodes > most || bytes > most.saturating_mul(16) {
            break;
        }
    }
    (nodes, bytes)
}

/// Tells whether a value can be quoted: small, and nothing in it looks like a reference of the schema.
pub(super) fn is_quotable(value: &Value) -> bool {
    const MAX_COUNT: usize = 20;
    weight(value, MAX_COUNT).0 <= MAX_COUNT && weight(value, MAX_COUNT).1 <= 300 && !refers(value)
}

/// Tells whether a reader of the schema would take something in a value for a reference.
pub(super) fn refers(value: &Value) -> bool {
    any_value(value, &|value| ["$ref", "$dynamicRef", "$id"].iter().any(|key| value.get(key).is_some()))
}
