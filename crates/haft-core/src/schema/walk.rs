//! Walking JSON Schemas: which keywords hold subschemas, following references, bounded visits and rewrites.
//!
//! Every walker of schemas builds on these functions, so that the list of keywords exists once.

use std::collections::HashSet;

use serde_json::{Map, Value};

/// The maximum depth of a walk; [`super::Schema::compile`] rejects deeper schemas.
pub const MAX_DEPTH: usize = 64;

/// The maximum number of schemas that are visited, because references can multiply.
const MAX_SCHEMAS: usize = 200;

/// How a keyword holds its subschemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subschemas {
    /// One schema. `items` of older drafts may hold a list instead.
    One,
    /// A list of schemas.
    List,
    /// A map from names to schemas.
    Map,
}

/// Returns how a keyword of JSON Schema 2020-12 or an older draft holds subschemas; `None` if it holds none.
pub fn subschemas(keyword: &str) -> Option<Subschemas> {
    Some(match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "items"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Subschemas::One,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Subschemas::List,
        "$defs" | "definitions" | "dependentSchemas" | "patternProperties" | "properties" => Subschemas::Map,
        _ => return None,
    })
}

/// Returns the value of a keyword with each of its subschemas replaced.
pub fn map_keyword(keyword: &str, value: &Value, mut replace: impl FnMut(&Value) -> Value) -> Value {
    match (subschemas(keyword), value) {
        (Some(Subschemas::One), Value::Object(_) | Value::Bool(_)) => replace(value),
        (Some(Subschemas::List | Subschemas::One), Value::Array(list)) => list.iter().map(replace).collect(),
        (Some(Subschemas::Map), Value::Object(map)) => {
            map.iter().map(|(name, schema)| (name.clone(), replace(schema))).collect()
        }
        _ => value.clone(),
    }
}

/// Rewrites a schema bottom-up: `rewrite` receives each object schema after its subschemas were rewritten.
///
/// Schemas deeper than `depth` and boolean schemas are kept as they are.
pub fn rewrite(schema: &Value, depth: usize, rewrite_one: &impl Fn(Map<String, Value>) -> Value) -> Value {
    let (Some(depth), Value::Object(map)) = (depth.checked_sub(1), schema) else { return schema.clone() };
    let inner = |subschema: &Value| rewrite(subschema, depth, rewrite_one);
    rewrite_one(map.iter().map(|(key, value)| (key.clone(), map_keyword(key, value, inner))).collect())
}

/// Calls `visit` for every declared part of a value with the schema that declares it, parents first.
///
/// Follows `properties` and `items` only, neither `$ref` nor `anyOf`, at most `depth` levels.
pub fn visit_declared(schema: &Value, value: &mut Value, depth: usize, visit: &impl Fn(&Value, &mut Value)) {
    let Some(depth) = depth.checked_sub(1) else { return };
    visit(schema, value);
    match value {
        Value::Object(map) => {
            let Some(declared) = schema.get("properties").and_then(Value::as_object) else { return };
            for (name, value) in map {
                if let Some(schema) = declared.get(name) {
                    visit_declared(schema, value, depth, visit);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for item in items.iter_mut() {
                visit_declared(schema, item, depth, visit);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the schema that a reference within the document names: `#` or `#/pointer`.
pub fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    root.pointer(&percent_encoding::percent_decode_str(pointer).decode_utf8().ok()?)
}

/// Returns the target of the schema's `$ref` and the members of its `allOf`, `anyOf` and `oneOf`: the schemas that
/// describe the same value.
pub fn combined<'a>(root: &'a Value, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(root, reference));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    target.into_iter().chain(lists.flatten())
}

/// Returns the properties that a schema of arguments declares, each once: its own and those of its `allOf`, `anyOf`,
/// `oneOf` and `$ref`.
pub fn declared_properties(root: &Value) -> Vec<(&str, &Value)> {
    let own = root.get("properties").and_then(Value::as_object).into_iter().flatten();
    let mut found: Vec<(&str, &Value)> = own.map(|(name, schema)| (name.as_str(), schema)).collect();
    if ["$ref", "allOf", "anyOf", "oneOf"].iter().all(|key| root.get(key).is_none()) {
        return found;
    }
    let mut names: HashSet<&str> = found.iter().map(|(name, _)| *name).collect();
    let mut pending: Vec<&Value> = combined(root, root).collect();
    pending.reverse();
    for _ in 0..MAX_SCHEMAS {
        let Some(schema) = pending.pop() else { break };
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if names.insert(name) {
                found.push((name, property));
            }
        }
        pending.extend(combined(root, schema).collect::<Vec<_>>().into_iter().rev());
    }
    found
}

/// Returns whether the value of a `type` keyword, a name or a list of names, includes a type.
pub fn includes_type(kind: Option<&Value>, name: &str) -> bool {
    match kind {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(types)) => types.iter().any(|one| one == name),
        _ => false,
    }
}

/// Returns whether the value of a `required` keyword lists a property.
pub fn lists_name(required: Option<&Value>, name: &str) -> bool {
    required.and_then(Value::as_array).is_some_and(|names| names.iter().any(|one| one == name))
}

/// Returns whether a test holds for any JSON value within a value, itself included, whether it is a schema or not.
pub fn any_value(value: &Value, test: &impl Fn(&Value) -> bool) -> bool {
    test(value) || child_values(value).any(|child| any_value(child, test))
}

/// Returns the number of nodes of a value, including itself, and its depth.
pub fn measure(value: &Value) -> (u64, u32) {
    let (mut nodes, mut max_depth) = (0_u64, 1);
    let mut pending = vec![(value, 1_u32)];
    while let Some((value, depth)) = pending.pop() {
        nodes += 1;
        max_depth = max_depth.max(depth);
        pending.extend(child_values(value).map(|child| (child, depth + 1)));
    }
    (nodes, max_depth)
}

/// Returns the direct members of an array or object.
pub fn child_values(value: &Value) -> impl Iterator<Item = &Value> {
    let items = value.as_array().into_iter().flatten();
    items.chain(value.as_object().into_iter().flat_map(|map| map.values()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rewrite_reaches_every_subschema_and_nothing_else() {
        let schema = json!({
            "title": "t", "enum": [{"title": "data"}], "items": [{"title": "t"}, true],
            "properties": {"title": {"title": "t", "default": {"title": "data"}}},
            "$defs": {"a": {"not": {"title": "t"}}}, "anyOf": [{"title": "t", "then": {"title": "t"}}],
        });
        let rewritten = rewrite(&schema, MAX_DEPTH, &|mut map| {
            map.shift_remove("title");
            Value::Object(map)
        });
        let expected = json!({
            "enum": [{"title": "data"}], "items": [{}, true],
            "properties": {"title": {"default": {"title": "data"}}},
            "$defs": {"a": {"not": {}}}, "anyOf": [{"then": {}}],
        });
        assert_eq!(rewritten, expected);
        assert_eq!(rewrite(&schema, 0, &|_| Value::Null), schema);
    }

    #[test]
    fn references_are_percent_decoded() {
        let root = json!({"$defs": {"a b": {"type": "string"}}});
        assert_eq!(resolve(&root, "#/$defs/a%20b"), Some(&json!({"type": "string"})));
        assert_eq!(resolve(&root, "#"), Some(&root));
        assert_eq!(resolve(&root, "other.json#/a"), None);
    }

    #[test]
    fn properties_of_combined_schemas_are_declared() {
        let check = |schema: Value, expected: &[&str]| {
            let names: Vec<&str> = declared_properties(&schema).into_iter().map(|(name, _)| name).collect();
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
