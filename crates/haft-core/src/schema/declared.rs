//! The arguments that a schema declares, wherever at its top it does.

use std::collections::HashSet;

use serde_json::Value;

/// The most schemas that are looked at: references may multiply.
const MAX_COUNT: usize = 200;

/// Returns the properties that a schema of arguments declares, each once: its own, and those of its alternatives and
/// parts (`allOf`, `anyOf`, `oneOf`), references followed.
pub fn declared(root: &Value) -> Vec<(&str, &Value)> {
    let own = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<(&str, &Value)> = own.map(|(name, schema)| (name.as_str(), schema)).collect();
    if ["$ref", "allOf", "anyOf", "oneOf"].iter().all(|key| root.get(key).is_none()) {
        return found;
    }
    let mut names: HashSet<&str> = found.iter().map(|(name, _)| *name).collect();
    let (mut pending, mut looked) = (parts(root, root), 0);
    pending.reverse();
    while let Some(schema) = pending.pop() {
        looked += 1;
        if looked > MAX_COUNT {
            break;
        }
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if names.insert(name) {
                found.push((name, property));
            }
        }
        pending.extend(parts(root, schema).into_iter().rev());
    }
    found
}

/// Returns the schemas that judge the same value as this one.
fn parts<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let place = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.strip_prefix('#'));
    let referred = place.and_then(|pointer| root.pointer(pointer));
    let listed =
        ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array()).flatten();
    referred.into_iter().chain(listed).collect()
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
