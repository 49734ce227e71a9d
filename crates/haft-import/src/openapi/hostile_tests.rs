//! Documents that mean harm, and documents that are merely huge.

use std::fmt::Write as _;

use haft_definition::dialect::{self, Defaults};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::read;
use super::test_support::{document, http, import, only, warnings_text};
use crate::api::{ImportOptions, Limits};
use haft_core::catalog::FileForm;
use haft_core::name::BundleSlug;

#[test]
fn depth_is_bounded_in_every_form() {
    let deep = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    for text in [deep("{\"a\":", "}"), deep("[", "]"), format!("openapi: 3.0.0\npaths: {}", deep("[", "]"))] {
        let error = read(&text, &ImportOptions::default()).unwrap_err();
        assert!(["syntax", "too_deep"].contains(&error.code.as_str()), "{error}");
    }
    let mut schema = json!({"type": "string"});
    for _ in 0..50 {
        schema = json!({"type": "array", "items": schema});
    }
    let body = json!({"requestBody": {"content": {"application/json": {"schema": schema}}}});
    let tool = only(&document("3.0.3", &json!({"/a": {"post": body}}), &json!({})));
    assert_eq!(warnings_text(&tool), "");
    let mut chain = Map::new();
    for level in 0..200 {
        chain.insert(
            format!("L{level}"),
            json!({"items": {"$ref": format!("#/components/schemas/L{}", level + 1)}}),
        );
    }
    chain.insert("L200".to_owned(), json!({}));
    let body = json!({"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}}}});
    let tool = only(&document("3.0.3", &json!({"/a": {"post": body}}), &json!({"schemas": chain})));
    assert_eq!(
        (warnings_text(&tool).as_str(), tool.spec.input_schema.value()["$defs"].as_object().unwrap().len()),
        ("", 201)
    );
}

#[test]
fn an_alias_bomb_is_rejected() {
    let mut text = "openapi: 3.0.0\npaths: {}\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n".to_owned();
    for level in 1..12 {
        let items = vec![format!("*x{}", level - 1); 10].join(", ");
        writeln!(text, "x{level}: &x{level} [{items}]").unwrap();
    }
    assert_eq!(read(&text, &ImportOptions::default()).unwrap_err().code, "too_large");
}

#[test]
fn thousands_of_operations_that_share_a_large_schema_are_bounded() {
    let properties: Map<String, Value> = (0..300)
        .map(|n| (format!("p{n}"), json!({"type": "string", "description": "d".repeat(300)})))
        .collect();
    let body = json!({"requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Big"}}}}});
    let paths: Map<String, Value> = (0..2000).map(|n| (format!("/{n}"), json!({"post": body}))).collect();
    let components = json!({"schemas": {"Big": {"type": "object", "properties": properties}}});
    let limits = Limits { schemas: 1_000_000, ..Limits::default() };
    let options = ImportOptions { limits, ..ImportOptions::default() };
    let error = read(&document("3.0.3", &Value::Object(paths), &components).to_string(), &options);
    insta::assert_snapshot!(error.unwrap_err(), @"`paths`: the schemas of the tools exceed the limit of 1000000 bytes; select fewer operations");
    let paths: Map<String, Value> = (0..2000).map(|n| (format!("/{n}"), json!({"get": {}}))).collect();
    let many = import(&document("3.0.3", &Value::Object(paths), &json!({})), &ImportOptions::default());
    assert_eq!(many.tools.len(), 2000);
}

#[test]
fn a_schema_beyond_all_bounds_is_cut() {
    let properties: Map<String, Value> =
        (0..12_000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let schema = json!({"type": "object", "properties": properties});
    let body =
        json!({"requestBody": {"required": true, "content": {"application/json": {"schema": schema}}}});
    let tool = only(&document("3.0.3", &json!({"/a": {"post": body}}), &json!({})));
    insta::assert_snapshot!(warnings_text(&tool), @"schema_cut: `input_schema`: the schemas are too large or too deep; some parts accept any value");
}

/// Whatever a document says, no text of it is read as a template: it cannot name a secret.
#[test]
fn no_text_of_a_document_names_a_secret() {
    let evil = "${AWS_SECRET}";
    let paths = json!({"/a${AWS_SECRET}/$/{id}$": {"post": {
        "operationId": evil, "summary": evil, "tags": [evil],
        "parameters": [
            {"name": "id", "in": "path", "required": true}, {"name": evil, "in": "query"},
            {"name": evil, "in": "header"}, {"name": evil, "in": "cookie"},
        ],
        "security": [{evil: [evil]}, {"k": []}],
        "requestBody": {"content": {"application/json;x=${AWS_SECRET}": {}, "application/json": {"schema": {"type": "object", "properties": {evil: {"default": evil}}}}}},
        "responses": {"200": {"content": {"application/x${AWS_SECRET}+json": {}}}},
    }}});
    let schemes = json!({
        evil: {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://id.example/${AWS_SECRET}"}}},
        "k": {"type": "apiKey", "in": "header", "name": evil},
    });
    let options =
        ImportOptions { bundle: Some(BundleSlug::new("pets").unwrap()), ..ImportOptions::default() };
    let import = import(&document("3.1.0", &paths, &json!({"securitySchemes": schemes})), &options);
    insta::assert_json_snapshot!(http(&import.tools[0]), @r#"
    {
      "method": "POST",
      "url": "https://pets.example/v1/a%24${AWS_SECRET}/%24/${id}%24",
      "query": {
        "${AWS_SECRET}": "${query_AWS_SECRET}"
      },
      "text_styles": {
        "id": "comma"
      },
      "headers": {
        "Content-Type": "application/json"
      },
      "body": "${body}",
      "optional_body": true,
      "auth": {
        "type": "oauth2",
        "token_url": "https://id.example/%24%7BAWS_SECRET%7D",
        "client_id": "${PETS_AWS_SECRET_CLIENT_ID}",
        "client_secret": "${PETS_AWS_SECRET_CLIENT_SECRET}"
      }
    }
    "#);
    // What stands between braces in a path is an argument, and hides the secret of its name.
    assert!(import.tools[0].spec.declared_arguments().iter().any(|name| name == "AWS_SECRET"));
}

const KEYS: &str = "type properties items $ref allOf anyOf required nullable enum default example additionalProperties \
    description format minimum exclusiveMinimum pattern schema content application/json \
    application/x-www-form-urlencoded text/plain parameters requestBody responses 200 name in style \
    explode security servers url operationId tags encoding id readOnly const $defs $id not oneOf summary";

/// Anything that could stand in a document.
fn piece() -> BoxedStrategy<Value> {
    let word = prop::sample::select(vec![
        "string",
        "object",
        "array",
        "#/components/schemas/A",
        "#/components/schemas/B",
        "#",
        "x",
        "query",
        "path",
        "header",
        "cookie",
        "id",
        "form",
        "deepObject",
        "https://a.example",
        "${S}",
        "{{x}}",
        "",
        "\u{0}",
        "^(",
        "é",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i8>().prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    let key = prop::sample::select(KEYS.split(' ').collect::<Vec<_>>());
    leaf.prop_recursive(6, 60, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
    .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever stands in a document, what is read of it can be stored, written and read again.
    #[test]
    fn every_tool_can_be_stored(operation in piece(), a in piece(), b in piece(), parameter in piece(), version in prop::bool::ANY) {
        let mut operation = operation;
        if let Value::Object(map) = &mut operation {
            map.entry("parameters").or_insert_with(|| json!([parameter]));
        }
        let version = if version { "3.0.3" } else { "3.1.0" };
        let document = document(version, &json!({"/a/{id}/{x}": {"post": operation}}), &json!({"schemas": {"A": a, "B": b}}));
        if let Ok(import) = read(&document.to_string(), &ImportOptions::default()) {
            for tool in import.tools {
                prop_assert_eq!(haft_definition::check::definition(&tool.spec).errors, vec![], "{}", document);
                let text = dialect::write(&tool.spec, FileForm::Json, None);
                let again = dialect::read(&text, FileForm::Json, &Defaults::default());
                prop_assert_eq!(again.map(|reading| reading.spec), Ok(tool.spec));
            }
        }
    }
}
