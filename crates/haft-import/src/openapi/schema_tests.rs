//! Schemas of both versions to JSON Schema 2020-12.

use serde_json::{Value, json};

use super::test_support::{http, post, warnings_text};

/// The schema of the one field `x` of a body.
fn field(version: &str, schema: &Value, schemas: &Value) -> (Value, Value, String) {
    let body = json!({"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {"x": schema}}}}});
    let tool = post(version, &json!({"requestBody": body}), &json!({"schemas": schemas}));
    let input = tool.spec.input_schema.value();
    let defs = input.get("$defs").cloned().unwrap_or_default();
    (input["properties"]["x"].clone(), defs, warnings_text(&tool))
}

#[test]
fn openapi_keywords_are_converted() {
    for (schema, expected) in [
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
        (
            json!({"type": "string", "nullable": true, "enum": ["a"]}),
            json!({"type": ["string", "null"], "enum": ["a", null]}),
        ),
        (json!({"nullable": false, "type": "string"}), json!({"type": "string"})),
        (json!({"nullable": true}), json!({})),
        (
            json!({"nullable": true, "oneOf": [{"type": "string"}], "description": "d"}),
            json!({"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}], "description": "d"}),
        ),
        (
            json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}),
            json!({"type": "integer", "exclusiveMinimum": 1}),
        ),
        (
            json!({"type": "integer", "maximum": 9, "exclusiveMaximum": false}),
            json!({"type": "integer", "maximum": 9}),
        ),
        (
            json!({"type": "number", "exclusiveMaximum": 9.5}),
            json!({"type": "number", "exclusiveMaximum": 9.5}),
        ),
        (json!({"type": "string", "example": "e"}), json!({"type": "string", "examples": ["e"]})),
        (
            json!({"type": "string", "examples": ["e", "f"]}),
            json!({"type": "string", "examples": ["e", "f"]}),
        ),
        (json!({"type": "string", "example": "e".repeat(1000)}), json!({"type": "string"})),
        (json!({"items": [{"type": "string"}]}), json!({"prefixItems": [{"type": "string"}]})),
        (
            json!({"type": "object", "properties": {"nullable": {"type": "boolean"}, "example": {"nullable": true, "type": "string"}}}),
            json!({"type": "object", "properties": {"nullable": {"type": "boolean"}, "example": {"type": ["string", "null"]}}}),
        ),
        (
            json!({"type": "object", "required": ["id", "n", "n"], "properties": {"id": {"type": "string", "readOnly": true}, "n": {}}}),
            json!({"type": "object", "required": ["n"], "properties": {"n": {}}}),
        ),
        (
            json!({"type": "object", "discriminator": {"propertyName": "k"}, "xml": {}, "externalDocs": {}, "x-foo": 1, "$id": "y", "$comment": "c"}),
            json!({"type": "object"}),
        ),
        (
            json!({"minimum": "1", "maxLength": -1, "required": true, "enum": [], "allOf": [], "uniqueItems": 1, "multipleOf": 0}),
            json!({}),
        ),
        (
            json!({"type": ["string", "string"], "format": "date-time"}),
            json!({"type": ["string"], "format": "date-time"}),
        ),
        (json!({"description": "a\u{0}\r\nb", "title": ""}), json!({"description": "a\nb"})),
        // A default would be sent, and change what nobody named.
        (
            json!({"type": "boolean", "default": false, "description": "Hide it."}),
            json!({"type": "boolean", "description": "Hide it. Default: `false`."}),
        ),
        (json!({"enum": [{"$ref": "#/x"}]}), json!({})),
        (json!(true), json!({})),
    ] {
        for version in ["3.0.3", "3.1.0"] {
            assert_eq!(field(version, &schema, &json!({})).0, expected, "{version} {schema}");
        }
    }
}

#[test]
fn invalid_schemas_are_warned_about() {
    for (schema, expected, doubt) in [
        (json!({"type": "file"}), json!({}), "unknown_type: `body.x`: unknown type \"file\", ignored"),
        (
            json!({"type": "string", "pattern": "^(?!a)b"}),
            json!({"type": "string"}),
            "unsupported_pattern: `body.x`: unsupported pattern `^(?!a)b`, ignored",
        ),
        (json!("x"), json!({}), "invalid_schema: `body.x`: invalid schema; any value is accepted"),
        (
            json!({"$ref": "other.yaml#/Pet"}),
            json!({}),
            "remote_reference: `body.x`: the reference `other.yaml#/Pet` points to another document, which is not \
             supported; merge all parts into one file; any value is accepted",
        ),
        (
            json!({"$ref": "#/components/schemas/Gone"}),
            json!({}),
            "missing_reference: `body.x`: the reference `#/components/schemas/Gone` was not found; any value is accepted",
        ),
        (
            json!({"$ref": "#/components/schemas/A"}),
            json!({}),
            "reference_loop: `body.x`: the reference `#/components/schemas/A` refers to itself; any value is accepted",
        ),
    ] {
        let schemas =
            json!({"A": {"$ref": "#/components/schemas/B"}, "B": {"$ref": "#/components/schemas/A"}});
        let (converted, _, warnings_text) = field("3.0.3", &schema, &schemas);
        assert_eq!((converted, warnings_text.as_str()), (expected, doubt), "{schema}");
    }
}

#[test]
fn references_are_inlined_and_cycles_are_kept() {
    let schemas = json!({
        "Name": {"type": "string", "description": "A name"},
        "Alias": {"$ref": "#/components/schemas/Name"},
        "Node": {"type": "object", "properties": {"name": {"$ref": "#/components/schemas/Name"}, "next": {"$ref": "#/components/schemas/Node"}}},
        "We/ird~": {"type": "integer"},
    });
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    assert_eq!(
        field("3.0.3", &reference("Alias"), &schemas).0,
        json!({"type": "string", "description": "A name"})
    );
    assert_eq!(field("3.0.3", &reference("We~1ird~0"), &schemas).0, json!({"type": "integer"}));
    assert_eq!(field("3.0.3", &reference("We~1ird%7E0"), &schemas).0, json!({"type": "integer"}));
    // Beside a reference nothing counts in 3.0, and everything in 3.1.
    let beside = json!({"$ref": "#/components/schemas/Name", "description": "Mine", "maxLength": 3});
    assert_eq!(field("3.0.3", &beside, &schemas).0, json!({"type": "string", "description": "A name"}));
    assert_eq!(
        field("3.1.0", &beside, &schemas).0,
        json!({"maxLength": 3, "allOf": [{"type": "string", "description": "A name"}], "description": "Mine"})
    );
    let (node, defs, warnings_text) = field("3.0.3", &reference("Node"), &schemas);
    let inner = json!({"type": "object", "properties": {
        "name": {"type": "string", "description": "A name"}, "next": {"$ref": "#/$defs/Node"},
    }});
    assert_eq!((node, defs, warnings_text.as_str()), (inner.clone(), json!({"Node": inner}), ""));
}

/// Each schema names the next one twice: put in, they would double with every level.
#[test]
fn exponential_references_are_kept() {
    let mut schemas = serde_json::Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/components/schemas/L{}", level + 1)});
        schemas.insert(format!("L{level}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    schemas.insert("L40".to_owned(), json!({"type": "string"}));
    let (converted, defs, warnings_text) =
        field("3.1.0", &json!({"$ref": "#/components/schemas/L0"}), &Value::Object(schemas));
    assert_eq!(converted, json!({"$ref": "#/$defs/L0"}));
    assert_eq!((defs.as_object().unwrap().len(), warnings_text.as_str()), (41, ""));
}

#[test]
fn a_reference_loop_is_dropped() {
    let schemas = json!({"A": {"allOf": [{"$ref": "#/components/schemas/A"}]}});
    let (converted, _, warnings_text) =
        field("3.0.3", &json!({"$ref": "#/components/schemas/A", "description": "x"}), &schemas);
    assert_eq!(converted, json!({}));
    insta::assert_snapshot!(warnings_text, @"schema_dropped: `input_schema`: arguments are not validated, because the schemas are invalid: `input_schema`: a `$ref` refers to itself without descending into the value");
}

#[test]
fn only_an_outline_of_the_response_is_used() {
    let answer = |responses: Value| {
        let tool = post(
            "3.0.3",
            &json!({"responses": responses}),
            &json!({"schemas": {
                "Pet": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer", "format": "int64"}, "tag": {"type": "string", "enum": ["a"], "description": "First\nsecond"}}},
                "Tree": {"type": "object", "properties": {"up": {"$ref": "#/components/schemas/Tree"}}},
            }}),
        );
        (
            tool.spec.output_schema.value(),
            http(&tool).request.headers.get("Accept").cloned().unwrap_or_default(),
        )
    };
    let json_of = |schema: Value| json!({"content": {"application/json": {"schema": schema}}});
    let pet = json_of(json!({"type": "array", "items": {"$ref": "#/components/schemas/Pet"}}));
    let outline = json!({"type": "array", "items": {"type": ["object", "null"], "properties": {
        "id": {"type": ["integer", "null"]}, "tag": {"type": ["string", "null"], "description": "First"},
    }}});
    let json_type = "application/json".to_owned();
    for (responses, expected) in [
        (json!({"200": pet}), (outline, json_type.clone())),
        (json!({"200": pet, "204": {"description": "none"}}), (json!({}), json_type.clone())),
        (
            json!({"200": json_of(json!({"$ref": "#/components/schemas/Tree"}))}),
            (json!({}), json_type.clone()),
        ),
        (json!({"200": json_of(json!({"oneOf": [{"type": "string"}]}))}), (json!({}), json_type.clone())),
        (json!({"200": {"content": {"text/csv": {}}}}), (json!({}), String::new())),
        (
            json!({"200": {"content": {"application/vnd.api+json": {}}}}),
            (json!({}), "application/vnd.api+json".to_owned()),
        ),
        (json!({"404": pet}), (json!({}), String::new())),
        (json!({"200": {"$ref": "#/nowhere"}}), (json!({}), String::new())),
    ] {
        assert_eq!(answer(responses.clone()), expected, "{responses}");
    }
}
