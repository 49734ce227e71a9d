//! Limits of schemas, checked before the library compiles them.

use std::collections::HashMap;

use serde_json::Value;

use super::walk::{MAX_DEPTH, any_value, child_values, combined, measure, resolve};
use crate::problem::{Problem, excerpt};

/// The maximum number of values (objects, arrays, scalars) in a schema.
const MAX_NODES: u64 = 20_000;

/// The maximum number of schemas that apply to one value, references followed. `allOf` with references to `allOf` can
/// double with every level, so that a small text expands to millions of schemas.
const MAX_WEIGHT: u64 = 100_000;

/// Returns the maximum number of schemas that apply to one value, or the problems of the schema.
pub(super) fn check(field: &str, schema: &Value) -> Result<u64, Vec<Problem>> {
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return Err(vec![Problem::new(field, "invalid_schema", "invalid JSON Schema: expected an object")]);
    }
    let (nodes, depth) = measure(schema);
    if nodes > MAX_NODES || depth as usize > MAX_DEPTH + 1 {
        let message =
            format!("the schema is too large: the limit is {MAX_NODES} values and {MAX_DEPTH} levels");
        return Err(vec![Problem::new(field, "schema_too_large", message)]);
    }
    let mut problems = Vec::new();
    references(field, schema, schema, &mut problems);
    if is_ambiguous(schema) {
        let message = "references are not supported together with a nested `$id`, which changes what `#` refers to; remove the `$id`";
        problems.push(Problem::new(field, "embedded_schema", message));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    weight(schema).map_err(|(code, message)| vec![Problem::new(field, code, message)])
}

/// Checks that all references are `#` or `#/pointer`: nothing is ever fetched, and the target must be known here.
/// Anchors and nested `$id`s are therefore not supported.
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
        let message =
            format!("unsupported `{key}` `{shown}`: only references within the schema (`#/…`) are supported");
        return Some(Problem::new(field, "remote_reference", message));
    }
    if target != "#" && !target.starts_with("#/") {
        let message =
            format!("unsupported `{key}` to the anchor `{shown}`: use a JSON pointer such as `#/$defs/name`");
        return Some(Problem::new(field, "anchor_reference", message));
    }
    if resolve(root, target).is_none() {
        let message = format!("`{key}` `{shown}` not found in the schema");
        return Some(Problem::new(field, "missing_reference", message));
    }
    None
}

/// Returns whether the schema has references and a nested schema has an `$id`.
fn is_ambiguous(root: &Value) -> bool {
    let refers = |value: &Value| {
        ["$ref", "$dynamicRef"].iter().any(|key| value.get(key).is_some_and(Value::is_string))
    };
    let embedded = |value: &Value| value.get("$id").is_some_and(Value::is_string);
    child_values(root).any(|child| any_value(child, &embedded)) && any_value(root, &refers)
}

/// Returns the highest weight of all schemas within the root, or the code and message of an error.
fn weight(root: &Value) -> Result<u64, (&'static str, String)> {
    let mut known = HashMap::new();
    let mut heaviest = 1;
    let mut pending = vec![root];
    while let Some(schema) = pending.pop() {
        weigh(root, schema, &mut known)?;
        heaviest = heaviest.max(weight_of(&known, schema));
        // Scalars have no subschemas.
        pending.extend(child_values(schema).filter(|child| child.is_object() || child.is_array()));
    }
    if heaviest > MAX_WEIGHT {
        let message = format!(
            "the schema is too large: more than {MAX_WEIGHT} schemas apply to one value when references are followed"
        );
        return Err(("schema_too_large", message));
    }
    Ok(heaviest)
}

#[derive(Clone, Copy)]
enum Visit {
    Open,
    /// The number of schemas that apply to the value, including this one.
    Done(u64),
}

type WeightCache = HashMap<*const Value, Visit>;

/// Returns the weight of a schema. Schemas without in-place subschemas weigh 1 and are not stored.
fn weight_of(known: &WeightCache, schema: &Value) -> u64 {
    match known.get(&std::ptr::from_ref(schema)) {
        Some(Visit::Done(weight)) => *weight,
        Some(Visit::Open) => 0,
        None => 1,
    }
}

/// Computes weights depth-first over the schemas that apply to the same value. The depth is only bounded by the size of
/// the schema, so this uses its own stack. A cycle would never end and is an error.
fn weigh<'a>(
    root: &'a Value,
    start: &'a Value,
    known: &mut WeightCache,
) -> Result<(), (&'static str, String)> {
    enum Step<'a> {
        Enter(&'a Value),
        Leave(&'a Value, Vec<&'a Value>),
    }
    let mut stack = vec![Step::Enter(start)];
    while let Some(step) = stack.pop() {
        match step {
            Step::Leave(schema, inner) => {
                let below = inner.into_iter().map(|next| weight_of(known, next));
                let weight = below.fold(1_u64, u64::saturating_add);
                known.insert(std::ptr::from_ref(schema), Visit::Done(weight));
            }
            Step::Enter(schema) => match known.get(&std::ptr::from_ref(schema)) {
                Some(Visit::Open) => {
                    let message = "a `$ref` refers to itself without descending into the value";
                    return Err(("reference_loop", message.to_owned()));
                }
                Some(Visit::Done(_)) => {}
                None => {
                    let inner = in_place(root, schema);
                    if !inner.is_empty() {
                        known.insert(std::ptr::from_ref(schema), Visit::Open);
                        let entered: Vec<_> = inner.iter().copied().map(Step::Enter).collect();
                        stack.push(Step::Leave(schema, inner));
                        stack.extend(entered);
                    }
                }
            },
        }
    }
    Ok(())
}

/// Returns the schemas that apply to the same value as this one, references followed.
fn in_place<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    // Most schemas have none of the keywords, and this is far cheaper than looking up each one.
    if !schema.as_object().is_some_and(|map| map.keys().any(|key| applies_in_place(key))) {
        return Vec::new();
    }
    let dynamic = schema.get("$dynamicRef").and_then(Value::as_str);
    let single = ["not", "if", "then", "else"].into_iter().filter_map(|key| schema.get(key));
    let dependent = schema.get("dependentSchemas").and_then(Value::as_object);
    combined(root, schema)
        .chain(dynamic.and_then(|reference| resolve(root, reference)))
        .chain(single)
        .chain(dependent.into_iter().flat_map(|map| map.values()))
        .collect()
}

/// Returns whether the schemas of a keyword apply to the same value as the schema that has it.
fn applies_in_place(keyword: &str) -> bool {
    matches!(
        keyword,
        "$ref"
            | "$dynamicRef"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "not"
            | "if"
            | "then"
            | "else"
            | "dependentSchemas"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Returns the code of the first problem, or an empty string.
    fn code(schema: &Value) -> String {
        check("s", schema)
            .err()
            .and_then(|problems| problems.into_iter().next())
            .map_or_else(String::new, |p| p.code)
    }

    #[test]
    fn loops_are_detected_through_every_applicator() {
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

    /// Returns definitions that refer to the next one twice with this keyword.
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
    fn exponential_schemas_are_rejected() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert_eq!(code(&doubling(100, keyword)), "schema_too_large", "{keyword}");
            assert_eq!(code(&doubling(5, keyword)), "", "{keyword}");
        }
        assert_eq!(check("s", &json!({"allOf": [{"type": "string"}, {"not": {}}]})), Ok(4));
    }

    #[test]
    fn only_pointer_references_are_supported() {
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
