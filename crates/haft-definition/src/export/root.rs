//! The top of a schema, as every model takes it: an object with properties, without a choice beside them.

use serde_json::{Map, Value, json};

use super::names::told_argument;
use super::parts::{branches, declares, joined};
use haft_core::problem::{Problem, excerpt};

/// Makes the schema of a tool's arguments one that every model takes; tells what that changes.
pub(super) fn plain_root(schema: &Value) -> (Map<String, Value>, Vec<Problem>) {
    let mut warnings = Vec::new();
    let own = schema.as_object().cloned().unwrap_or_default();
    let mut map = whole(schema, own, &mut warnings);
    fold(schema, &mut map, &mut warnings);
    for key in ["not", "enum", "const", "if", "then", "else"] {
        map.shift_remove(key);
    }
    match map.get_mut("type") {
        Some(kind) => *kind = json!("object"),
        None => drop(map.shift_insert(0, "type".to_owned(), json!("object"))),
    }
    rename(&mut map, &mut warnings);
    (map, warnings)
}

/// Joins what stands beside the properties by reference or `allOf`.
fn whole(root: &Value, mut own: Map<String, Value>, warnings: &mut Vec<Problem>) -> Map<String, Value> {
    if let Some(reference) = own.shift_remove("$ref") {
        let mut parts = vec![json!({"$ref": reference})];
        parts.extend(own.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default());
        own.insert("allOf".to_owned(), parts.into());
    }
    if let Some(all) = own.contains_key("allOf").then(|| joined(root, &own)) {
        own = all.unwrap_or_else(|| {
            let message = "models take no `allOf` at the top, and this one cannot be said by one schema: it is left out";
            warnings.push(Problem::new("input_schema.allOf", "all_of_dropped", message));
            own.shift_remove("allOf");
            own
        });
    }
    own
}

/// Makes one object of a choice of several: all their properties, of which those are required that each requires.
fn fold(root: &Value, map: &mut Map<String, Value>, warnings: &mut Vec<Problem>) {
    let Some(choice) = branches(map).cloned() else { return };
    map.shift_remove("anyOf");
    map.shift_remove("oneOf");
    let shapes: Vec<_> = choice
        .iter()
        .filter_map(|branch| {
            let parts = json!({"allOf": [branch]});
            joined(root, parts.as_object()?)
        })
        .collect();
    // Branches that only say which properties go together tell a model nothing that it could send.
    if !shapes.iter().any(declares) {
        return;
    }
    let entry = map.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = entry {
        for shape in &shapes {
            for (name, schema) in shape.get("properties").and_then(Value::as_object).into_iter().flatten() {
                add(properties, name, schema);
            }
        }
    }
    let required = |shape: &Map<String, Value>| match shape.get("required") {
        Some(Value::Array(names)) => names.clone(),
        _ => Vec::new(),
    };
    let mut common = shapes.first().map(required).unwrap_or_default();
    common.retain(|name| shapes.iter().all(|shape| required(shape).contains(name)));
    common.splice(0..0, required(map));
    if !common.is_empty() {
        map.insert("required".to_owned(), Value::Array(common));
    }
    let message = "models take no choice of shapes at the top: they are told all properties of all of them, and a \
                   call is checked against the definition";
    warnings.push(Problem::new("input_schema", "choice_folded", message));
}

fn add(properties: &mut Map<String, Value>, name: &str, schema: &Value) {
    match properties.get_mut(name) {
        None => drop(properties.insert(name.to_owned(), schema.clone())),
        Some(there) if there == schema => {}
        Some(Value::Object(there)) if there.len() == 1 && there.contains_key("anyOf") => {
            if let Some(Value::Array(several)) = there.get_mut("anyOf")
                && !several.contains(schema)
            {
                several.push(schema.clone());
            }
        }
        Some(there) => *there = json!({"anyOf": [there.clone(), schema]}),
    }
}

/// Gives names to the arguments that every model takes.
fn rename(map: &mut Map<String, Value>, warnings: &mut Vec<Problem>) {
    // What stands there stays in its place: a text that is always the same can be cached by whoever reads it.
    let entry = map.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = entry else {
        *entry = json!({});
        return;
    };
    if !properties.keys().any(|name| told_argument(name).is_some()) {
        return;
    }
    let mut told = Map::new();
    for (name, schema) in std::mem::take(properties) {
        match told_argument(&name) {
            Some(other) => {
                let shown = excerpt(&name, 60);
                let message = format!(
                    "not every model takes the name `{shown}`: they are told `{other}`, and calls may use either"
                );
                warnings.push(Problem::new(format!("input_schema.{shown}"), "renamed_argument", message));
                told.insert(other, schema);
            }
            None => drop(told.insert(name, schema)),
        }
    }
    *properties = told;
    if let Some(Value::Array(required)) = map.get_mut("required") {
        for name in required {
            if let Some(other) = name.as_str().and_then(told_argument) {
                *name = other.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_top_is_an_object_whatever_a_schema_says() {
        let check = |schema: Value, expected: Value, codes: &[&str]| {
            let (made, warnings) = plain_root(&schema);
            assert_eq!(Value::Object(made), expected, "{schema}");
            assert_eq!(warnings.iter().map(|w| w.code.as_str()).collect::<Vec<_>>(), codes, "{schema}");
        };
        let empty = json!({"type": "object", "properties": {}});
        check(json!({}), empty.clone(), &[]);
        check(json!(true), empty.clone(), &[]);
        check(json!({"type": ["object", "null"], "not": {"required": ["a"]}, "enum": [{}]}), empty, &[]);
        check(
            json!({"properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
            json!({"type": "object", "properties": {"a": {}, "b": {}}}),
            &[],
        );
        check(
            json!({"required": ["k"], "properties": {"k": {}}, "oneOf": [
                {"properties": {"a": {"type": "string"}, "c": {}}, "required": ["c"]},
                {"$ref": "#/$defs/b"},
            ], "$defs": {"b": {"properties": {"a": {"type": "null"}, "c": {}}, "required": ["a", "c"]}}}),
            json!({"type": "object", "required": ["k", "c"],
                   "$defs": {"b": {"properties": {"a": {"type": "null"}, "c": {}}, "required": ["a", "c"]}},
                   "properties": {"k": {}, "a": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "c": {}}}),
            &["choice_folded"],
        );
        check(
            json!({"$ref": "#/$defs/b", "$defs": {"b": {"type": "object", "properties": {"a": {}}}}}),
            json!({"type": "object", "$defs": {"b": {"type": "object", "properties": {"a": {}}}}, "properties": {"a": {}}}),
            &[],
        );
        check(
            json!({"properties": {"a": {}}, "allOf": [{"minProperties": 1}, {"minProperties": 2}]}),
            json!({"type": "object", "properties": {"a": {}}}),
            &["all_of_dropped"],
        );
    }

    #[test]
    fn arguments_get_names_that_every_model_takes() {
        let (made, warnings) =
            plain_root(&json!({"properties": {"$top": {"type": "integer"}, "b": {}}, "required": ["$top"]}));
        let told = told_argument("$top").unwrap();
        assert_eq!(made["required"], json!([told]));
        assert_eq!(made["properties"], json!({&told: {"type": "integer"}, "b": {}}));
        let expected = format!(
            "`input_schema.$top`: not every model takes the name `$top`: they are told `{told}`, and calls may use either"
        );
        assert_eq!(warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
