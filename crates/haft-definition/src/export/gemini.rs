//! Converts schemas to the subset of JSON Schema that Gemini supports. Unsupported keywords are added to descriptions;
//! calls are validated against the original schema.

use serde_json::{Map, Value, json};

use super::parts::{alternatives, definition_name, description, merge_all_of};
use haft_core::schema::walk::{MAX_DEPTH, includes_type, map_keyword};

/// The keywords that Gemini documents.
const SUPPORTED_KEYWORDS: [&str; 15] = [
    "type",
    "format",
    "title",
    "enum",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "minimum",
    "maximum",
    "properties",
    "additionalProperties",
    "required",
    "anyOf",
    "$defs",
];

/// Rewrites a schema.
pub(super) fn rewrite(schema: Map<String, Value>) -> Value {
    let root = Value::Object(schema);
    subschema(&root, &root, MAX_DEPTH)
}

fn subschema(root: &Value, schema: &Value, depth: usize) -> Value {
    let Value::Object(own) = schema else { return json!({}) };
    let Some(depth) = depth.checked_sub(1) else { return json!({}) };
    if let Some(Value::String(reference)) = own.get("$ref") {
        return reference_schema(own, reference);
    }
    let all = merge_all_of(root, own);
    let own = all.as_ref().unwrap_or(own);
    let mut made = Map::new();
    for (key, value) in own {
        if SUPPORTED_KEYWORDS.contains(&key.as_str()) {
            let is_closed = matches!(key.as_str(), "items" | "additionalProperties") && value.is_boolean();
            let inner = |one: &Value| if is_closed { one.clone() } else { subschema(root, one, depth) };
            made.insert(key.clone(), map_keyword(key, value, inner));
        }
    }
    if let Some(choice) = alternatives(own) {
        made.insert("anyOf".to_owned(), choice.iter().map(|one| subschema(root, one, depth)).collect());
    }
    if let Some(Value::Object(older)) = own.get("definitions") {
        let entry = made.entry("$defs").or_insert_with(|| json!({}));
        for (name, schema) in older {
            if let Value::Object(all) = entry {
                all.entry(name.as_str()).or_insert_with(|| subschema(root, schema, depth));
            }
        }
    }
    values(own, &mut made);
    if let Some(text) = description(own, |key| SUPPORTED_KEYWORDS.contains(&key)) {
        made.insert("description".to_owned(), text.into());
    }
    Value::Object(made)
}

/// A reference has no other keywords beside it.
fn reference_schema(own: &Map<String, Value>, reference: &str) -> Value {
    let target = definition_name(reference).map_or_else(
        || reference.to_owned(),
        |name| format!("#/$defs/{}", name.replace('~', "~0").replace('/', "~1")),
    );
    let mut made = match description(own, |_| false) {
        Some(text) => json!({"anyOf": [{"$ref": target}], "description": text}),
        None => json!({"$ref": target}),
    };
    // At the root the definitions are kept.
    if let (Some(defs), Value::Object(made)) = (own.get("$defs"), &mut made) {
        made.insert("$defs".to_owned(), defs.clone());
    }
    made
}

/// `enum` supports only strings and numbers; a constant becomes an `enum` with one value.
fn values(own: &Map<String, Value>, made: &mut Map<String, Value>) {
    let constant = own.get("const").map(|only| vec![only.clone()]);
    let Some(mut list) = constant.or_else(|| own.get("enum").and_then(Value::as_array).cloned()) else {
        return;
    };
    let had_null = list.contains(&Value::Null);
    list.retain(|value| value.is_string() || value.is_number());
    made.shift_remove("enum");
    if had_null
        && !list.is_empty()
        && !includes_type(own.get("type"), "null")
        && let Some(kind) = made.get_mut("type")
    {
        *kind = json!([kind.clone(), "null"]);
    }
    if !list.is_empty() {
        made.insert("enum".to_owned(), Value::Array(list));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_gemini_does_not_know_is_said_in_words() {
        let check = |schema: Value, expected: Value| {
            assert_eq!(rewrite(schema.as_object().unwrap().clone()), expected, "{schema}");
        };
        check(
            json!({"$schema": "x", "type": "object", "properties": {
                "n": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9, "description": "How many"},
                "s": {"type": "string", "minLength": 1, "pattern": "^a", "x-mine": 1},
                "c": {"const": "on"}, "b": {"type": "boolean", "const": true}, "any": true,
                "e": {"type": "string", "enum": ["a", null]},
                "r": {"$ref": "#/definitions/t", "description": "A tree"},
                "o": {"oneOf": [{"type": "string"}, {"$ref": "#/definitions/t"}]},
                "l": {"allOf": [{"type": "array"}, {"items": {"type": "string", "uniqueItems": true}}]},
            }, "required": ["n"], "definitions": {"t": {"type": "object", "additionalProperties": {"$ref": "#"}}}}),
            json!({"type": "object", "properties": {
                "n": {"type": "integer", "maximum": 9, "description": "How many (exclusiveMinimum: 0)"},
                "s": {"type": "string", "description": "pattern: \"^a\", minLength: 1"},
                "c": {"enum": ["on"]}, "b": {"type": "boolean"}, "any": {},
                "e": {"type": ["string", "null"], "enum": ["a"]},
                "r": {"anyOf": [{"$ref": "#/$defs/t"}], "description": "A tree"},
                "o": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/t"}]},
                "l": {"type": "array", "items": {"type": "string", "description": "uniqueItems: true"}},
            }, "required": ["n"], "$defs": {"t": {"type": "object", "additionalProperties": {"$ref": "#"}}}}),
        );
    }
}
