//! What a schema may not be, whatever the library would make of it.

use std::collections::HashMap;

use serde_json::Value;

use super::walk::{MAX_DEPTH, any_value, child_values, combined, resolve};
use crate::problem::{Problem, excerpt};

/// The most values (objects, arrays, scalars) in a schema.
const MAX_NODES: usize = 20_000;

/// The most schemas that may judge one and the same value, references followed: `allOf` of references to `allOf`
/// doubles with every level, so a small text can stand for millions of rules.
const MAX_WEIGHT: u64 = 100_000;

/// Returns how many schemas judge one value at most, or everything that rules the schema out.
pub(super) fn check(field: &str, schema: &Value) -> Result<u64, Vec<Problem>> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err(vec![Problem::new(
            field,
            "invalid_schema",
            "not a valid JSON Schema: expected an object",
        )]);
    }
    let mut nodes = 0;
    if !within(schema, 0, &mut nodes) {
        let message = format!("the schema is too large: at most {MAX_NODES} values and {MAX_DEPTH} levels");
        return Err(vec![Problem::new(field, "schema_too_large", message)]);
    }
    let mut problems = Vec::new();
    references(field, schema, schema, &mut problems);
    if is_ambiguous(schema) {
        let message = "references beside a nested `$id` are refused: remove that `$id`, which makes `#` mean another place";
        problems.push(Problem::new(field, "embedded_schema", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    weight(schema).map_err(|(code, message)| vec![Problem::new(field, code, message)])
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

/// Only `#` and `#/pointer` are followed: nothing is fetched, ever, and what a pointer means can be told here.
/// Anchors and schemas with an `$id` of their own would change that, so references cannot go by them.
fn references(field: &str, root: &Value, at: &Value, problems: &mut Vec<Problem>) {
    match at {
        Value::Array(items) => items.iter().for_each(|item| references(field, root, item, problems)),
        Value::Object(map) => {
            for (key, item) in map {
                if let ("$ref" | "$dynamicRef", Value::String(target)) = (key.as_str(), item) {
                    problems.extend(reference(field, root, key, target));
                } else {
                    references(field, root, item, problems);
                }
            }
        }
        _ => {}
    }
}

fn reference(field: &str, root: &Value, key: &str, target: &str) -> Option<Problem> {
    let shown = excerpt(target, 80);
    if !target.starts_with('#') {
        let message = format!(
            "`{key}` to `{shown}` is refused: only references within the schema (`#/…`) are followed"
        );
        return Some(Problem::new(field, "remote_reference", message));
    }
    if target != "#" && !target.starts_with("#/") {
        let message =
            format!("`{key}` to the anchor `{shown}` is refused: write its place, such as `#/$defs/name`");
        return Some(Problem::new(field, "anchor_reference", message));
    }
    if resolve(root, target).is_none() {
        let message = format!("`{key}` to `{shown}` leads nowhere");
        return Some(Problem::new(field, "missing_reference", message));
    }
    None
}

/// Tells whether a schema other than the root has an `$id`, where there are references at all.
fn is_ambiguous(root: &Value) -> bool {
    let refers = |value: &Value| {
        ["$ref", "$dynamicRef"].iter().any(|key| value.get(key).is_some_and(Value::is_string))
    };
    let embedded = |value: &Value| value.get("$id").is_some_and(Value::is_string);
    child_values(root).any(|child| any_value(child, &embedded)) && any_value(root, &refers)
}

/// Weighs every schema within the root; returns the highest weight, or the code and message of what is wrong.
fn weight(root: &Value) -> Result<u64, (&'static str, String)> {
    let mut known = HashMap::new();
    let mut heaviest = 1;
    let mut pending = vec![root];
    while let Some(schema) = pending.pop() {
        weigh(root, schema, &mut known)?;
        heaviest = heaviest.max(weight_of(&known, schema));
        pending.extend(child_values(schema));
    }
    if heaviest > MAX_WEIGHT {
        let message = format!(
            "the schema is too large: with its references followed, more than {MAX_WEIGHT} schemas judge one value"
        );
        return Err(("schema_too_large", message));
    }
    Ok(heaviest)
}

#[derive(Clone, Copy)]
enum Visit {
    Open,
    /// How many schemas judge the value with this one, itself included.
    Done(u64),
}

type Known = HashMap<*const Value, Visit>;

fn weight_of(known: &Known, schema: &Value) -> u64 {
    match known.get(&std::ptr::from_ref(schema)) {
        Some(Visit::Done(weight)) => *weight,
        _ => 0,
    }
}

/// Depth-first over the edges that stay at the same value; its depth is bounded by the schema's size, so it
/// keeps its own stack. A way that comes back to itself would never end.
fn weigh<'a>(root: &'a Value, start: &'a Value, known: &mut Known) -> Result<(), (&'static str, String)> {
    enum Step<'a> {
        Enter(&'a Value),
        Leave(&'a Value),
    }
    let mut stack = vec![Step::Enter(start)];
    while let Some(step) = stack.pop() {
        match step {
            Step::Leave(schema) => {
                let below = in_place(root, schema).into_iter().map(|next| weight_of(known, next));
                let weight = below.fold(1_u64, u64::saturating_add);
                known.insert(std::ptr::from_ref(schema), Visit::Done(weight));
            }
            Step::Enter(schema) => match known.get(&std::ptr::from_ref(schema)) {
                Some(Visit::Open) => {
                    let message = "a `$ref` leads back to itself without going into the value";
                    return Err(("reference_loop", message.to_owned()));
                }
                Some(Visit::Done(_)) => {}
                None => {
                    known.insert(std::ptr::from_ref(schema), Visit::Open);
                    stack.push(Step::Leave(schema));
                    stack.extend(in_place(root, schema).into_iter().map(Step::Enter));
                }
            },
        }
    }
    Ok(())
}

/// Returns the schemas that apply to the same value as this one, references followed.
fn in_place<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let dynamic = schema.get("$dynamicRef").and_then(Value::as_str);
    let single = ["not", "if", "then", "else"].into_iter().filter_map(|key| schema.get(key));
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    combined(root, schema)
        .chain(dynamic.and_then(|reference| resolve(root, reference)))
        .chain(single)
        .chain(dependent.into_iter().flat_map(|map| map.values()))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The code of the first problem, or nothing.
    fn code(schema: &Value) -> String {
        check("s", schema)
            .err()
            .and_then(|problems| problems.into_iter().next())
            .map_or_else(String::new, |p| p.code)
    }

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
            assert_eq!(code(&schema), "reference_loop", "{schema}");
        }
        for schema in [
            json!({"properties": {"child": {"$ref": "#"}}}),
            json!({"$defs": {"a": {"type": "string"}}, "anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}),
            json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}),
            json!({"$id": "https://example.com/s", "properties": {"child": {"$ref": "#"}}}),
            json!({"properties": {"a": {"$id": "b", "type": "string"}}}),
            json!({"unevaluatedProperties": {"$ref": "#"}}),
        ] {
            assert_eq!(code(&schema), "", "{schema}");
        }
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"not": deep});
        }
        assert_eq!(code(&deep), "schema_too_large");
        assert_eq!(code(&json!({"enum": vec![0; 30_000]})), "schema_too_large");
    }

    /// Each definition names the next one twice by this keyword.
    fn doubling(levels: usize, keyword: &str) -> Value {
        let mut defs = serde_json::Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            defs.insert(format!("d{level}"), json!({keyword: [next, next]}));
        }
        defs.insert(format!("d{levels}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": defs})
    }

    #[test]
    fn what_doubles_with_every_level_is_refused() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(code(&doubling(100, keyword)), "schema_too_large", "{keyword}");
            assert_eq!(code(&doubling(5, keyword)), "", "{keyword}");
        }
        assert_eq!(check("s", &json!({"allOf": [{"type": "string"}, {"not": {}}]})), Ok(4));
    }

    #[test]
    fn references_go_by_place_only() {
        for (schema, expected) in [
            (json!({"$defs": {"a": {"$anchor": "a", "$ref": "#a"}}}), "anchor_reference"),
            (json!({"$dynamicAnchor": "m", "items": {"$dynamicRef": "#m"}}), "anchor_reference"),
            (json!({"items": {"$dynamicRef": "#"}}), ""),
            (json!({"$anchor": "unused", "type": "object"}), ""),
            (
                json!({"items": {"$id": "x", "$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#"}}}, "$defs": {"a": {}}}),
                "embedded_schema",
            ),
        ] {
            assert_eq!(code(&schema), expected, "{schema}");
        }
    }
}
