//! Schemas of servers that follow another dialect than JSON Schema 2020-12: what can be said is said in its words, and a
//! rule that cannot be checked is left out, as the server checks it anyway.

use serde_json::{Map, Value, json};

use haft_core::schema::Schema;

/// How deep a schema is looked into.
const MAX_DEPTH: usize = 64;

/// Returns the schema in the words of 2020-12.
pub(super) fn normalize_schema(schema: &Value) -> Value {
    soft(schema, MAX_DEPTH)
}

fn soft(schema: &Value, depth: usize) -> Value {
    let (Some(depth), Value::Object(map)) = (depth.checked_sub(1), schema) else { return schema.clone() };
    let mut made = Map::new();
    for (key, value) in map {
        match (key.as_str(), value) {
            // Regular expressions of other engines look around and back.
            ("pattern", Value::String(_)) if Schema::compile("", &json!({ "pattern": value })).is_err() => {}
            ("$schema" | "additionalItems", _)
            | ("exclusiveMinimum" | "exclusiveMaximum", Value::Bool(_)) => {}
            ("minimum", bound) if is_on(map, "exclusiveMinimum") => {
                made.insert("exclusiveMinimum".to_owned(), bound.clone());
            }
            ("maximum", bound) if is_on(map, "exclusiveMaximum") => {
                made.insert("exclusiveMaximum".to_owned(), bound.clone());
            }
            ("items", Value::Array(items)) => {
                let items = items.iter().map(|item| soft(item, depth)).collect();
                made.insert("prefixItems".to_owned(), Value::Array(items));
                let rest = map.get("additionalItems").map(|rest| soft(rest, depth));
                made.extend(rest.map(|rest| ("items".to_owned(), rest)));
            }
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(all),
            ) => {
                let all = all.iter().map(|(name, inner)| (name.clone(), soft(inner, depth))).collect();
                made.insert(key.clone(), Value::Object(all));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(all)) => {
                made.insert(key.clone(), all.iter().map(|inner| soft(inner, depth)).collect());
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames",
                inner,
            ) => {
                made.insert(key.clone(), soft(inner, depth));
            }
            (_, value) => {
                made.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(made)
}

fn is_on(map: &Map<String, Value>, key: &str) -> bool {
    map.get(key) == Some(&Value::Bool(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_dialects_are_read() {
        let check = |given: Value, expected: Value| {
            let made = normalize_schema(&given);
            assert_eq!(made, expected, "{given}");
            assert!(Schema::compile("", &made).is_ok(), "{made}");
        };
        check(
            json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)b"}, "b": {"pattern": "^x"}}}),
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"pattern": "^x"}}}),
        );
        check(
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"pair": {"type": "array",
                   "items": [{"type": "string"}, {"type": "number"}], "additionalItems": false}}}),
            json!({"properties": {"pair": {"type": "array",
                   "prefixItems": [{"type": "string"}, {"type": "number"}], "items": false}}}),
        );
        check(
            json!({"anyOf": [{"minimum": 1, "exclusiveMinimum": true}, {"maximum": 9, "exclusiveMaximum": false}]}),
            json!({"anyOf": [{"exclusiveMinimum": 1}, {"maximum": 9}]}),
        );
        check(
            json!({"properties": {"pattern": {"type": "string"}}}),
            json!({"properties": {"pattern": {"type": "string"}}}),
        );
    }
}
