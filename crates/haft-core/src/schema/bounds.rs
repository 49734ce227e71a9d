//! What a schema may not be, whatever the library would make of it.

use std::collections::HashMap;

use serde_json::Value;

use crate::problem::{Problem, excerpt};

/// The most values (objects, arrays, scalars) in a schema.
const MAX_NODES: usize = 20_000;
/// The deepest nesting.
const MAX_DEPTH: usize = 64;

/// Keywords whose subschemas judge the same value as the schema that holds them.
const SAME_VALUE_ONE: [&str; 5] = ["not", "if", "then", "else", "unevaluatedProperties"];
const SAME_VALUE_LIST: [&str; 3] = ["allOf", "anyOf", "oneOf"];
const SAME_VALUE_MAP: [&str; 1] = ["dependentSchemas"];

/// Returns everything that rules the schema out.
pub(super) fn check(field: &str, schema: &Value) -> Vec<Problem> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return vec![Problem::new(field, "invalid_schema", "not a valid JSON Schema: expected an object")];
    }
    let mut nodes = 0;
    if !within(schema, 0, &mut nodes) {
        let message = format!("the schema is too large: at most {MAX_NODES} values and {MAX_DEPTH} levels");
        return vec![Problem::new(field, "schema_too_large", message)];
    }
    let mut problems = Vec::new();
    references(field, schema, schema, &mut problems);
    if problems.is_empty() {
        loops(field, schema, &mut problems);
    }
    problems
}

fn within(value: &Value, depth: usize, nodes: &mut usize) -> bool {
    *nodes += 1;
    if depth > MAX_DEPTH || *nodes > MAX_NODES {
        return false;
    }
    match value {
        Value::Array(items) => items.iter().all(|item| within(item, depth + 1, nodes)),
        Value::Object(map) => map.values().all(|item| within(item, depth + 1, nodes)),
        _ => true,
    }
}

/// Only `#`, `#/pointer` and `#anchor` are followed: nothing is fetched, ever.
fn references(field: &str, root: &Value, at: &Value, problems: &mut Vec<Problem>) {
    match at {
        Value::Array(items) => items.iter().for_each(|item| references(field, root, item, problems)),
        Value::Object(map) => {
            for (key, item) in map {
                if let ("$ref" | "$dynamicRef", Value::String(target)) = (key.as_str(), item) {
                    if !target.starts_with('#') {
                        let message = format!(
                            "`{key}` to `{}` is refused: only references within the schema (`#/…`) are followed",
                            excerpt(target, 80)
                        );
                        problems.push(Problem::new(field, "remote_reference", message));
                    } else if target.starts_with("#/") && resolve(root, target).is_none() {
                        let message = format!("`{key}` to `{}` leads nowhere", excerpt(target, 80));
                        problems.push(Problem::new(field, "missing_reference", message));
                    }
                } else {
                    references(field, root, item, problems);
                }
            }
        }
        _ => {}
    }
}

fn resolve<'a>(root: &'a Value, target: &str) -> Option<&'a Value> {
    let pointer = target.strip_prefix('#')?;
    let decoded = percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?;
    root.pointer(&decoded)
}

/// A chain of references that comes back to itself without going into the value would never end.
fn loops(field: &str, root: &Value, problems: &mut Vec<Problem>) {
    let mut state = HashMap::new();
    let mut pending = vec![root];
    while let Some(schema) = pending.pop() {
        if has_loop(root, schema, &mut state) {
            let message = "a `$ref` leads back to itself without going into the value";
            problems.push(Problem::new(field, "reference_loop", message));
            return;
        }
        match schema {
            Value::Array(items) => pending.extend(items),
            Value::Object(map) => pending.extend(map.values()),
            _ => {}
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Visit {
    Open,
    Done,
}

/// Depth-first over the edges that stay at the same value; its depth is bounded by the schema's size, so it
/// keeps its own stack.
fn has_loop<'a>(root: &'a Value, start: &'a Value, state: &mut HashMap<*const Value, Visit>) -> bool {
    enum Step<'a> {
        Enter(&'a Value),
        Leave(&'a Value),
    }
    let mut stack = vec![Step::Enter(start)];
    while let Some(step) = stack.pop() {
        match step {
            Step::Leave(schema) => {
                state.insert(std::ptr::from_ref(schema), Visit::Done);
            }
            Step::Enter(schema) => match state.get(&std::ptr::from_ref(schema)) {
                Some(Visit::Open) => return true,
                Some(Visit::Done) => {}
                None => {
                    state.insert(std::ptr::from_ref(schema), Visit::Open);
                    stack.push(Step::Leave(schema));
                    stack.extend(same_value(root, schema).into_iter().map(Step::Enter));
                }
            },
        }
    }
    false
}

fn same_value<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let Value::Object(map) = schema else { return Vec::new() };
    let mut next = Vec::new();
    for key in ["$ref", "$dynamicRef"] {
        if let Some(Value::String(target)) = map.get(key) {
            next.extend(resolve(root, target));
        }
    }
    next.extend(SAME_VALUE_ONE.iter().filter_map(|key| map.get(*key)));
    for key in SAME_VALUE_LIST {
        next.extend(map.get(key).and_then(Value::as_array).into_iter().flatten());
    }
    for key in SAME_VALUE_MAP {
        next.extend(map.get(key).and_then(Value::as_object).into_iter().flat_map(|m| m.values()));
    }
    next
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn loops_are_found_through_every_applicator() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
            json!({"allOf": [{"$ref": "#"}]}),
            json!({"anyOf": [true, {"not": {"$ref": "#"}}]}),
            json!({"properties": {"x": {"$ref": "#/properties/x"}}}),
            json!({"dependentSchemas": {"a": {"$ref": "#"}}}),
        ] {
            assert_eq!(
                check("s", &schema).first().map(|p| p.code.as_str()),
                Some("reference_loop"),
                "{schema}"
            );
        }
        for schema in [
            json!({"properties": {"child": {"$ref": "#"}}}),
            json!({"$defs": {"a": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}),
            json!({"properties": {"$ref": {"type": "string"}}}),
        ] {
            assert_eq!(check("s", &schema), Vec::new(), "{schema}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"not": deep});
        }
        assert_eq!(check("s", &deep)[0].code, "schema_too_large");
        assert_eq!(check("s", &json!({"enum": vec![0; 30_000]}))[0].code, "schema_too_large");
    }
}
