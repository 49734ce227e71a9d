use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::export::{drop_nulls, root::object_root};
use haft_core::schema::Schema;

fn written(schema: &Value) -> Result<Value, Vec<String>> {
    let (root, _) = object_root(schema);
    rewrite(root).map_err(|all| all.iter().map(ToString::to_string).collect())
}

fn closed(properties: &Value) -> Value {
    let names: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
    json!({"type": "object", "properties": properties, "required": names, "additionalProperties": false})
}

#[test]
fn optional_properties_accept_null() {
    let check = |property: Value, required: bool, expected: Value| {
        let names = if required { json!(["p"]) } else { json!([]) };
        let schema = json!({"type": "object", "properties": {"p": property}, "required": names,
            "$defs": {"d": {"type": "string"}}});
        let mut made = written(&schema).unwrap();
        made.as_object_mut().unwrap().shift_remove("$defs");
        assert_eq!(made, closed(&json!({"p": expected})), "{property}");
    };
    check(json!({"type": "string"}), true, json!({"type": "string"}));
    check(json!({"type": "string"}), false, json!({"type": ["string", "null"]}));
    check(json!({"type": ["string", "null"]}), false, json!({"type": ["string", "null"]}));
    check(json!({"type": ["string", "integer"]}), false, json!({"type": ["string", "integer", "null"]}));
    check(json!({"enum": ["C", "F"]}), false, json!({"type": ["string", "null"], "enum": ["C", "F", null]}));
    check(json!({"enum": [1, 2.5]}), true, json!({"type": ["integer", "number"], "enum": [1, 2.5]}));
    check(
        json!({"const": "x"}),
        false,
        json!({"anyOf": [{"type": "string", "const": "x"}, {"type": "null"}]}),
    );
    check(json!({"$ref": "#/$defs/d"}), true, json!({"$ref": "#/$defs/d"}));
    check(
        json!({"$ref": "#/$defs/d", "description": "Said"}),
        false,
        json!({"anyOf": [{"$ref": "#/$defs/d"}, {"type": "null"}], "description": "Said"}),
    );
    check(
        json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}),
        false,
        json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}),
    );
    check(
        json!({"type": "object", "properties": {"a": {"type": "boolean"}}}),
        true,
        closed(&json!({"a": {"type": ["boolean", "null"]}})),
    );
    check(
        json!({"type": "object", "oneOf": [{"properties": {"a": {"type": "null"}}, "required": ["a"]}]}),
        true,
        json!({"anyOf": [closed(&json!({"a": {"type": "null"}}))]}),
    );
    check(
        json!({"type": "array", "items": {"type": "string", "format": "uri"}, "maxItems": 3, "uniqueItems": true}),
        true,
        json!({"type": "array", "items": {"type": "string", "description": "format: \"uri\""}, "maxItems": 3,
               "description": "uniqueItems: true"}),
    );
    check(
        json!({"type": "string", "format": "date", "maxLength": 10, "default": "today", "description": "When", "x-a": 1}),
        true,
        json!({"type": "string", "format": "date", "description": "When (default: \"today\", maxLength: 10)"}),
    );
    // Branches that only narrow are left to the check of the call.
    check(
        json!({"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]}),
        true,
        json!({"type": "string"}),
    );
}

#[test]
fn definitions_are_kept_as_far_as_they_are_used() {
    let schema = json!({"type": "object", "properties": {"t": {"$ref": "#/definitions/tree"}}, "required": ["t"],
    "definitions": {
        "tree": {"type": "object", "properties": {"left": {"$ref": "#/definitions/tree"}}},
        "unused": {"type": "object"},
    }});
    let mut expected = closed(&json!({"t": {"$ref": "#/$defs/tree"}}));
    expected["$defs"] =
        json!({"tree": closed(&json!({"left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}))});
    assert_eq!(written(&schema), Ok(expected));
}

#[test]
fn unsupported_schemas_are_reported_with_their_path() {
    let map = "strict mode does not support objects with arbitrary keys; declare the properties";
    let any = "strict mode needs a type for every value; add `type`";
    let list = "strict mode needs one schema for all items of an array; set `items`";
    let all_of = "strict mode does not support this `allOf`, which cannot be merged into one schema";
    let check = |property: Value, place: &str, message: &str| {
        let schema = json!({"type": "object", "properties": {"p": property}});
        assert_eq!(written(&schema), Err(vec![format!("`input_schema.p{place}`: {message}")]), "{property}");
    };
    check(json!({"type": "object"}), "", map);
    check(json!({"type": "object", "properties": {}, "additionalProperties": {"type": "string"}}), "", map);
    check(json!({"type": "object", "properties": {"a": {"type": "object"}}}), ".a", map);
    check(json!({"type": "object", "patternProperties": {"^x": {}}, "properties": {}}), "", map);
    check(json!({}), "", any);
    check(json!(true), "", any);
    check(json!({"anyOf": [{"type": "string"}, {}]}), ".anyOf.1", any);
    check(json!({"type": "array"}), "", list);
    check(json!({"type": "array", "items": {}}), ".items", any);
    check(
        json!({"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "string"}}),
        "",
        list,
    );
    check(json!({"allOf": [{"type": "string"}, {"type": "integer"}]}), "", all_of);
    check(json!({"$ref": "#/properties/p/anyOf/0"}), "", "strict mode supports only references to `$defs`");
    check(
        json!({"enum": [["a"]], "type": "array", "items": {"type": "string"}}),
        "",
        "strict mode supports only strings, numbers, booleans and null in `enum`",
    );
    let root = json!({"type": "object", "additionalProperties": true});
    assert_eq!(written(&root), Err(vec![format!("`input_schema`: {map}")]));
}

#[test]
fn limits_are_reported() {
    let check = |schema: Value, expected: &str| {
        assert_eq!(
            written(&schema),
            Err(vec![format!("`input_schema`: strict mode allows at most {expected}")])
        );
    };
    let many: Map<String, Value> = (0..5001).map(|n| (format!("p{n}"), json!({"type": "null"}))).collect();
    check(json!({"properties": many}), "5000 properties; the schema has 5001");
    let mut deep = json!({"type": "string"});
    for _ in 0..11 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    check(deep, "10 levels of objects and lists; the schema has 11");
    let values: Vec<u32> = (0..1001).collect();
    check(json!({"properties": {"a": {"enum": values}}}), "1000 values in `enum`; the schema has 1001");
}

fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "string"})),
        Just(json!({"type": ["integer", "null"]})),
        Just(json!({"enum": ["a", "b"]})),
        Just(json!({"const": 1})),
        Just(json!({"type": "string", "maxLength": 1})),
        Just(json!({"$ref": "#/$defs/d"})),
        Just(json!({"type": "object"})),
        Just(json!({})),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        let named = proptest::collection::vec((prop_oneof!["[a-c]"], inner.clone(), any::<bool>()), 0..4);
        prop_oneof![
            named.prop_map(|list| {
                let required: BTreeSet<_> = list.iter().filter(|p| p.2).map(|p| p.0.clone()).collect();
                let all: Map<String, Value> =
                    list.into_iter().map(|(name, schema, _)| (name, schema)).collect();
                json!({"type": "object", "properties": all, "required": required})
            }),
            inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
            proptest::collection::vec(inner.clone(), 1..3).prop_map(|any| json!({"anyOf": any})),
            inner.prop_map(|all| json!({"allOf": [all]})),
        ]
    })
}

/// Creates an argument as a model in strict mode may: every property, null where that is allowed.
fn sent(root: &Value, schema: &Value) -> Value {
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        return sent(root, root.pointer(place.trim_start_matches('#')).unwrap());
    }
    if let Some(choice) = schema.get("anyOf").and_then(Value::as_array) {
        let null = choice.iter().find(|one| one["type"] == "null");
        return sent(root, null.unwrap_or(&choice[0]));
    }
    if let Some(only) = schema.get("const") {
        return only.clone();
    }
    let map = schema.as_object().unwrap();
    if includes_type(map.get("type"), "null") {
        return Value::Null;
    }
    if let Some(list) = schema.get("enum") {
        return list[0].clone();
    }
    if includes_type(map.get("type"), "object") {
        let all = schema["properties"].as_object().unwrap();
        return all.iter().map(|(name, schema)| (name.clone(), sent(root, schema))).collect();
    }
    if includes_type(map.get("type"), "array") {
        return json!([sent(root, &schema["items"])]);
    }
    json!("x")
}

proptest! {
    /// Whatever is written strictly is a schema, and what a model sends by it, nulls and all, fits the tool's own.
    #[test]
    fn a_strict_call_matches_the_definition(property in any_schema(), required in any::<bool>()) {
        let names = if required { json!(["p"]) } else { json!([]) };
        let schema = json!({"type": "object", "properties": {"p": property}, "required": names,
            "$defs": {"d": {"type": "object", "properties": {"s": {"type": "string"}}}}});
        if let (Ok(own), Ok(strict)) = (Schema::compile("s", &schema), written(&schema)) {
            let compiled = Schema::compile("s", &strict);
            prop_assert!(compiled.is_ok(), "{compiled:?} {strict}");
            let mut args = sent(&strict, &strict);
            prop_assert_eq!(compiled.unwrap().check(&args), Ok(()), "{} {}", args, strict);
            if own.check(&args).is_err() {
                drop_nulls(&schema, &mut args);
            }
            prop_assert_eq!(own.check(&args), Ok(()), "{} {}", args, schema);
        }
    }

    #[test]
    fn any_schema_is_handled(schema in any_schema()) {
        let _ = written(&schema);
        let (root, _) = object_root(&schema);
        let _ = crate::export::gemini::rewrite(root);
    }
}
