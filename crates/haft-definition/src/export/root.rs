//! Converts the root of a schema to the form that every model supports: an object with properties and without
//! alternatives.

use serde_json::{Map, Value, json};

use super::names::argument_alias;
use super::parts::{alternatives, has_properties, merge_all_of};
use haft_core::problem::{Problem, excerpt};

/// Returns the schema of a tool's arguments in a form that every model supports, with warnings about changes.
pub(super) fn object_root(schema: &Value) -> (Map<String, Value>, Vec<Problem>) {
    let mut warnings = Vec::new();
    let own = schema.as_object().cloned().unwrap_or_default();
    let mut map = merge_parts(schema, own, &mut warnings);
    merge_alternatives(schema, &mut map, &mut warnings);
    for key in ["not", "enum", "const", "if", "then", "else"] {
        map.shift_remove(key);
    }
    match map.get_mut("type") {
        Some(kind) => *kind = json!("object"),
        None => drop(map.shift_insert(0, "type".to_owned(), json!("object"))),
    }
    apply_aliases(&mut map, &mut warnings);
    (map, warnings)
}

/// Merges the target of `$ref` and the members of `allOf`.
fn merge_parts(root: &Value, mut own: Map<String, Value>, warnings: &mut Vec<Problem>) -> Map<String, Value> {
    if let Some(reference) = own.shift_remove("$ref") {
        let mut parts = vec![json!({"$ref": reference})];
        parts.extend(own.get("allOf").and_then(Value::as_array).cloned().unwrap_or_default());
        own.insert("allOf".to_owned(), parts.into());
    }
    if let Some(all) = own.contains_key("allOf").then(|| merge_all_of(root, &own)) {
        own = all.unwrap_or_else(|| {
            let message = "removed a top-level `allOf`, which models do not support and which cannot be merged into one schema";
            warnings.push(Problem::new("input_schema.allOf", "all_of_dropped", message));
            own.shift_remove("allOf");
            own
        });
    }
    own
}

/// Merges the alternatives into one object with all properties; those that every alternative requires are required.
fn merge_alternatives(root: &Value, map: &mut Map<String, Value>, warnings: &mut Vec<Problem>) {
    let Some(choice) = alternatives(map).cloned() else { return };
    map.shift_remove("anyOf");
    map.shift_remove("oneOf");
    let shapes: Vec<_> = choice
        .iter()
        .filter_map(|branch| {
            let parts = json!({"allOf": [branch]});
            merge_all_of(root, parts.as_object()?)
        })
        .collect();
    // Alternatives without properties only restrict combinations, which does not help a model.
    if !shapes.iter().any(has_properties) {
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
    let message = "merged the top-level alternatives into one object, because models do not support them; \
                   calls are validated against the original schema";
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

/// Replaces argument names that not every model supports by aliases.
fn apply_aliases(map: &mut Map<String, Value>, warnings: &mut Vec<Problem>) {
    // The order of keys is preserved, so that the exported text is stable and can be cached.
    let entry = map.entry("properties").or_insert_with(|| json!({}));
    let Value::Object(properties) = entry else {
        *entry = json!({});
        return;
    };
    if !properties.keys().any(|name| argument_alias(name).is_some()) {
        return;
    }
    let mut renamed = Map::new();
    for (name, schema) in std::mem::take(properties) {
        match argument_alias(&name) {
            Some(alias) => {
                let shown = excerpt(&name, 60);
                let message = format!(
                    "models see `{shown}` as `{alias}`, because not every model supports the name; calls may use either"
                );
                warnings.push(Problem::new(format!("input_schema.{shown}"), "renamed_argument", message));
                renamed.insert(alias, schema);
            }
            None => drop(renamed.insert(name, schema)),
        }
    }
    *properties = renamed;
    if let Some(Value::Array(required)) = map.get_mut("required") {
        for name in required {
            if let Some(alias) = name.as_str().and_then(argument_alias) {
                *name = alias.into();
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
            let (made, warnings) = object_root(&schema);
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
            object_root(&json!({"properties": {"$top": {"type": "integer"}, "b": {}}, "required": ["$top"]}));
        let alias = argument_alias("$top").unwrap();
        assert_eq!(made["required"], json!([alias]));
        assert_eq!(made["properties"], json!({&alias: {"type": "integer"}, "b": {}}));
        let expected = format!(
            "`input_schema.$top`: models see `$top` as `{alias}`, because not every model supports the name; calls may use either"
        );
        assert_eq!(warnings.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }
}
