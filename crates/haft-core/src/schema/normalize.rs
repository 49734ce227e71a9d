//! Converts schemas of older drafts and of OpenAPI 3.0 to JSON Schema 2020-12.
//!
//! Constraints that cannot be checked, such as patterns of other regular expression engines, are removed: the server
//! that publishes the schema checks them itself.

use serde_json::{Map, Value, json};

use super::{Schema, walk};

/// Converts a schema and all its subschemas.
pub fn normalize(schema: &Value) -> Value {
    walk::rewrite(schema, walk::MAX_DEPTH, &|mut map| {
        map.shift_remove("$schema");
        if map.get("pattern").and_then(Value::as_str).is_some_and(|pattern| !is_supported_pattern(pattern)) {
            map.shift_remove("pattern");
        }
        normalize_keywords(map)
    })
}

/// Converts the keywords of one schema whose subschemas are converted already.
pub fn normalize_keywords(mut map: Map<String, Value>) -> Value {
    normalize_bounds(&mut map);
    normalize_items(&mut map);
    match map.shift_remove("nullable") {
        Some(Value::Bool(true)) => allow_null(map),
        _ => Value::Object(map),
    }
}

/// Reports whether a regular expression compiles in the engine that checks values.
pub fn is_supported_pattern(pattern: &str) -> bool {
    Schema::compile("", &json!({"pattern": pattern})).is_ok()
}

/// Draft 4: `exclusiveMinimum: true` makes `minimum` exclusive.
fn normalize_bounds(map: &mut Map<String, Value>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(Value::Bool(is_exclusive)) = map.get(exclusive) else { continue };
        let limit = if *is_exclusive { map.shift_remove(bound) } else { None };
        match limit {
            Some(limit) => drop(map.insert(exclusive.to_owned(), limit)),
            None => drop(map.shift_remove(exclusive)),
        }
    }
}

/// Draft 7: `items` may be a list, and `additionalItems` describes the items after it.
fn normalize_items(map: &mut Map<String, Value>) {
    let rest = map.shift_remove("additionalItems");
    if map.get("items").is_some_and(Value::is_array)
        && let Some(items) = map.shift_remove("items")
    {
        map.insert("prefixItems".to_owned(), items);
        map.extend(rest.map(|rest| ("items".to_owned(), rest)));
    }
}

/// Returns a schema that accepts `null` besides what the given one accepts.
pub fn allow_null(mut map: Map<String, Value>) -> Value {
    let null_schema = json!({"type": "null"});
    let is_plain_choice =
        ["type", "const", "enum", "allOf", "oneOf", "not", "$ref"].iter().all(|key| !map.contains_key(*key));
    if map.is_empty() {
        return Value::Object(map);
    }
    if let Some(Value::Array(choice)) = map.get_mut("anyOf").filter(|_| is_plain_choice) {
        if !choice.contains(&null_schema) {
            choice.push(null_schema);
        }
        return Value::Object(map);
    }
    if map.contains_key("const") || map.contains_key("$ref") || !map.contains_key("type") {
        let description = map.shift_remove("description");
        let mut outer = Map::from_iter([("anyOf".to_owned(), json!([map, null_schema]))]);
        outer.extend(description.map(|text| ("description".to_owned(), text)));
        return Value::Object(outer);
    }
    if !walk::includes_type(map.get("type"), "null") {
        match map.get_mut("type") {
            Some(Value::Array(types)) => types.push(json!("null")),
            Some(kind) => *kind = json!([kind.take(), "null"]),
            None => {}
        }
    }
    if let Some(Value::Array(choices)) = map.get_mut("enum")
        && !choices.contains(&Value::Null)
    {
        choices.push(Value::Null);
    }
    Value::Object(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(schema: &Value, expected: &Value) {
        let normalized = normalize(schema);
        assert_eq!(normalized, *expected, "{schema}");
        assert!(Schema::compile("", &normalized).is_ok(), "{normalized}");
    }

    #[test]
    fn older_drafts_are_converted() {
        check(
            &json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}, "b": {"pattern": "^x"}}}),
            &json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"pattern": "^x"}}}),
        );
        check(
            &json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"pair": {"type": "array",
                    "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false}}}),
            &json!({"properties": {"pair": {"type": "array",
                    "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}}}),
        );
        check(
            &json!({"anyOf": [{"minimum": 1, "exclusiveMinimum": true}, {"maximum": 9, "exclusiveMaximum": false}]}),
            &json!({"anyOf": [{"exclusiveMinimum": 1}, {"maximum": 9}]}),
        );
        check(
            &json!({"properties": {"pattern": {"type": "string"}}}),
            &json!({"properties": {"pattern": {"type": "string"}}}),
        );
    }

    #[test]
    fn nullable_schemas_accept_null() {
        for (schema, expected) in [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (json!({"type": "string", "nullable": false}), json!({"type": "string"})),
            (
                json!({"type": "string", "enum": ["a"], "nullable": true}),
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (json!({"const": 1, "nullable": true}), json!({"anyOf": [{"const": 1}, {"type": "null"}]})),
            (
                json!({"anyOf": [{"type": "string"}], "nullable": true}),
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            ),
            (
                json!({"minimum": 1, "description": "d", "nullable": true}),
                json!({"description": "d", "anyOf": [{"minimum": 1}, {"type": "null"}]}),
            ),
            (json!({"nullable": true}), json!({})),
        ] {
            check(&schema, &expected);
        }
    }
}
