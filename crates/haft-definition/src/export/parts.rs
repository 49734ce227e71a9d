//! What the parts of JSON Schema that models know have in common: references, `allOf`, and what becomes of keywords
//! that they do not know.

use haft_core::schema::walk::resolve;
use serde_json::{Map, Value};

/// The most schemas that are joined into one.
const MAX_JOINED: usize = 500;
/// The longest value of a keyword that a description repeats.
const MAX_REMARK: usize = 80;

/// Keywords whose meaning a description can repeat in a few letters.
const REMARKS: [&str; 16] = [
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

/// Returns the definition that a reference names: `#/$defs/NAME`, or `definitions` of older drafts.
pub(super) fn definition_name(reference: &str) -> Option<String> {
    let name = reference.strip_prefix("#/$defs/").or_else(|| reference.strip_prefix("#/definitions/"))?;
    let decoded = percent_encoding::percent_decode_str(name).decode_utf8().ok()?;
    (!decoded.contains('/')).then(|| decoded.replace("~1", "/").replace("~0", "~"))
}

/// Returns a definition by its name.
pub(super) fn definition<'a>(root: &'a Value, name: &str) -> Option<&'a Value> {
    ["$defs", "definitions"].into_iter().find_map(|key| root.get(key)?.get(name))
}

/// Joins what `allOf` lists to the schema that has it, references followed; `None` where two of them cannot both
/// be said by one schema.
pub(super) fn joined(root: &Value, schema: &Map<String, Value>) -> Option<Map<String, Value>> {
    let mut sum = schema.clone();
    let Some(Value::Array(parts)) = sum.shift_remove("allOf") else { return Some(schema.clone()) };
    let mut all = Joining { root, left: MAX_JOINED, sum };
    parts.iter().all(|part| all.add(part)).then_some(all.sum)
}

struct Joining<'a> {
    root: &'a Value,
    left: usize,
    sum: Map<String, Value>,
}

impl Joining<'_> {
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
                self.sum.entry(key.as_str()).or_insert_with(|| value.clone());
                true
            }
            _ => *self.sum.entry(key.as_str()).or_insert_with(|| value.clone()) == *value,
        })
    }

    fn add_target(&mut self, reference: &str) -> bool {
        resolve(self.root, reference).is_some_and(|schema| self.add(schema))
    }

    fn properties(&mut self, properties: &Map<String, Value>) -> bool {
        let entry = self.sum.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        let Value::Object(sum) = entry else { return false };
        properties.iter().all(|(name, schema)| {
            // A property that is only named again says nothing new.
            let says_nothing = schema.as_object().is_some_and(Map::is_empty) || *schema == Value::Bool(true);
            let there = sum.entry(name.as_str()).or_insert_with(|| schema.clone());
            says_nothing || *there == *schema
        })
    }

    fn required(&mut self, names: &[Value]) -> bool {
        let entry = self.sum.entry("required").or_insert_with(|| Value::Array(Vec::new()));
        let Value::Array(sum) = entry else { return false };
        for name in names {
            if !sum.contains(name) {
                sum.push(name.clone());
            }
        }
        true
    }
}

/// Returns the description of a schema, with what it says by keywords that are not kept.
pub(super) fn description(schema: &Map<String, Value>, is_kept: impl Fn(&str) -> bool) -> Option<String> {
    let remark = |key: &&str| {
        let value = schema.get(*key).filter(|_| !is_kept(key))?.to_string();
        (value.len() <= MAX_REMARK).then(|| format!("{key}: {value}"))
    };
    let remarks: Vec<String> = REMARKS.iter().filter_map(remark).collect();
    let written = schema.get("description").and_then(Value::as_str).filter(|text| !text.is_empty());
    match (written, remarks.is_empty()) {
        (None, true) => None,
        (Some(text), true) => Some(text.to_owned()),
        (None, false) => Some(remarks.join(", ")),
        (Some(text), false) => Some(format!("{text} ({})", remarks.join(", "))),
    }
}

/// Returns the branches of a choice; `oneOf` is told as `anyOf`.
pub(super) fn branches(schema: &Map<String, Value>) -> Option<&Vec<Value>> {
    ["anyOf", "oneOf"].into_iter().find_map(|key| schema.get(key)?.as_array())
}

/// Tells whether a schema says which properties there are.
pub(super) fn declares(schema: &Map<String, Value>) -> bool {
    schema.get("properties").and_then(Value::as_object).is_some_and(|properties| !properties.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_joined_where_one_schema_can_say_them() {
        let root = json!({"$defs": {
            "named": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
            "loop": {"allOf": [{"$ref": "#/$defs/loop"}]},
        }});
        let check = |schema: Value, expected: Option<Value>| {
            let made = joined(&root, schema.as_object().unwrap()).map(Value::Object);
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
