//! The arguments that a schema declares, wherever at its top it does.

use std::collections::{HashSet, VecDeque};

use serde_json::Value;

use super::walk::combined;

/// The maximum number of schemas that are visited, because references can multiply.
const MAX_SCHEMAS: usize = 200;

/// Returns the properties that a schema of arguments declares, each once: its own, and those of its alternatives and
/// parts (`allOf`, `anyOf`, `oneOf`), references followed.
pub fn declared(root: &Value) -> Vec<(&str, &Value)> {
    let own = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<(&str, &Value)> = own.map(|(name, schema)| (name.as_str(), schema)).collect();
    if ["$ref", "allOf", "anyOf", "oneOf"].iter().all(|key| root.get(key).is_none()) {
        return found;
    }
    let mut names: HashSet<&str> = found.iter().map(|(name, _)| *name).collect();
    let mut pending = VecDeque::from_iter(combined(root, root));
    for _ in 0..MAX_SCHEMAS {
        let Some(schema) = pending.pop_front() else { break };
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if names.insert(name) {
                found.push((name, property));
            }
        }
        for part in combined(root, schema).collect::<Vec<_>>().into_iter().rev() {
            pending.push_front(part);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_found_in_parts_and_alternatives() {
        let check = |schema: Value, expected: &[&str]| {
            let names: Vec<&str> = declared(&schema).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, expected, "{schema}");
        };
        check(json!({"properties": {"a": {}, "b": {}}}), &["a", "b"]);
        check(json!({}), &[]);
        check(
            json!({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}, {"$ref": "#/$defs/c"}],
                   "oneOf": [{"properties": {"a": {}, "d": {}}}], "$defs": {"c": {"anyOf": [{"properties": {"c": {}}}]}}}),
            &["a", "b", "c", "d"],
        );
        check(json!({"$ref": "#", "properties": {"a": {}}}), &["a"]);
    }
}
