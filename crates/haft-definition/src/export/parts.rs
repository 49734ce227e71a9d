//! Functions shared by the schema conversions for models: references, `allOf`, and descriptions of unsupported keywords.

use haft_core::schema::walk::resolve;
use serde_json::{Map, Value};

/// The maximum number of schemas that are `merge_all_of` into one.
const MAX_MERGED: usize = 500;
/// The maximum length of a keyword's value in a description.
const MAX_DESCRIBED_VALUE: usize = 80;

/// Keywords that are added to the description if a model does not support them.
const DESCRIBED_KEYWORDS: [&str; 16] = [
    "default",
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "contentEncoding",
];

/// Returns the name of the definition in a reference: `#/$defs/NAME`, or `#/definitions/NAME` of older drafts.
pub(super) fn definition_name(reference: &str) -> Option<String> {
    let name = reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"))?;
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8().ok()?;
    (!decoded.contains('/')).then(|| decoded.replace("~1", "/").replace("~0", "~"))
}

/// Returns a definition by its name.
pub(super) fn definition<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    ["$defs", "definitions"].into_iter().find_map(|key| root.get(key)?.get(name))
}

/// Merges the members of `allOf` into the schema, references followed; `None` if two of them conflict.
pub(super) fn merge_all_of(root: &Value, schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut merged = schema.clone();
    let Some(Value::Array(parts)) = merged.shift_remove("allOf") else { return Some(schema.clone()) };
    let mut all = AllOfMerge { root, left: MAX_MERGED, merged };
    parts.iter().all(|part| all.add(part)).then_some(all.merged)
}

struct AllOfMerge<'a> {
    root: &'a Value,
    left: usize,
    merged: Map<String, Value>,
}

impl AllOfMerge<'_> {
    fn add(&mut self, part: &Value) -> bool {
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        let Value::Object(part) = part else { return *part == Value::Bool(true) };
        part.iter().all(|(key, value)| match (key.as_str(), value) {
            ("allOf", Value::Array(parts)) => parts.iter().all(|part| self.add(part)),
            ("$ref", Value::String(reference)) => self.add_target(reference),
            ("properties", Value::Object(properties)) => self.properties(properties),
            ("required", Value::Array(names)) => self.required(names),
            ("description" | "title" | "default" | "examples" | "$defs" | "definitions" | "$schema", _) => {
                self.merged.entry(key.as_str()).or_insert_with(|| value.clone());
                true
            }
            _ => *self.merged.entry(key.as_str()).or_insert_with(|| value.clone()) == *value,
        })
    }

    fn add_target(&mut self, reference: &str) -> bool {
        resolve(self.root, reference).is_some_and(|schema| self.add(schema))
    }

    fn properties(&mut self, properties: &Map<String, Value>) -> bool {
        let entry = self.merged.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(merged) = entry else { return false };
        properties.iter().all(|(name, schema)| {
            // An empty schema adds no constraint.
            let is_empty = schema.as_object().is_some_and(Map::is_empty) || *schema == Value::Bool(true);
            let there = merged.entry(name.as_str()).or_insert_with(|| schema.clone());
            is_empty || *there == *schema
        })
    }

    fn required(&mut self, names: &[Value]) -> bool {
        let entry = self.merged.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(merged) = entry else { return false };
        for name in names {
            if !merged.contains(name) {
                merged.push(name.clone());
            }
        }
        true
    }
}

/// Returns the description of a schema, extended by the keywords that are not kept.
pub(super) fn description(schema: &Map<String, Value>, is_kept: impl Fn(&str) -> bool) -> Option<String> {
    let constraint = |key: &&str| {
        let value = schema.get(*key).filter(|_| !is_kept(key))?.to_string();
        (value.len() <= MAX_DESCRIBED_VALUE).then(|| format!("{key}: {value}"))
    };
    let constraints: Vec<String> = DESCRIBED_KEYWORDS.iter().filter_map(constraint).collect();
    let written = schema.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
    match (written, constraints.is_empty()) {
        (None, true) => None,
        (Some(text), true) => Some(text.to_owned()),
        (None, false) => Some(constraints.join(", ")),
        (Some(text), false) => Some(format!("{text} ({})", constraints.join(", "))),
    }
}

/// Returns the alternatives of a schema; `oneOf` is treated as `anyOf`.
pub(super) fn alternatives(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array())
}

/// Returns whether a schema declares properties.
pub(super) fn has_properties(schema: &Map<String, Value>) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_of_is_merged_if_possible() {
        let root = json!({"$defs": {
            "named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "loop": {"allOf": [{"$ref": "#/$defs/loop"}]},
        }});
        let check = |schema: Value, expected: Option<Value>| {
            let made = merge_all_of(&root, schema.as_object().unwrap()).map(Value::Object);
            assert_eq!(made, expected, "{schema}");
        };
        check(json!({"type": "string"}), Some(json!({"type": "string"})));
        check(json!({"$ref": "#/$defs/named"}), Some(json!({"$ref": "#/$defs/named"})));
        check(
            json!({"description": "d", "allOf": [{"$ref": "#/$defs/named"}, {"properties": {"age": {}}, "required": ["age", "name"]}]}),
            Some(json!({"description": "d", "type": "object",
                        "properties": {"name": {"type": "string"}, "age": {}}, "required": ["name", "age"]})),
        );
        check(
            json!({"allOf": [{"$ref": "#/$defs/named"}]}),
            Some(json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]})),
        );
        check(json!({"allOf": [{"minimum": 1}, {"minimum": 2}]}), None);
        check(
            json!({"allOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"a": {"type": "null"}}}]}),
            None,
        );
        check(json!({"allOf": [{"$ref": "#/$defs/gone"}]}), None);
        check(json!({"allOf": [{"$ref": "#/$defs/loop"}]}), None);
        check(json!({"allOf": [false]}), None);
    }

    #[test]
    fn a_description_repeats_what_is_not_kept() {
        let check = |schema: Value, expected: Option<&str>| {
            let made = description(schema.as_object().unwrap(), |key| key == "minimum");
            assert_eq!(made.as_deref(), expected, "{schema}");
        };
        check(json!({}), None);
        check(json!({"description": "Days", "minimum": 1}), Some("Days"));
        check(
            json!({"description": "Days", "default": 3, "maxLength": 9}),
            Some("Days (default: 3, maxLength: 9)"),
        );
        check(json!({"default": "a"}), Some("default: \"a\""));
        check(json!({"default": "x".repeat(100)}), None);
    }
}
