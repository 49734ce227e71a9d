//! Swagger 2.0 documents.

use serde_json::{Value, json};

use super::read;
use super::test_support::{http, import, only, warnings_text};
use crate::api::ImportOptions;
use haft_core::implementation::{ApiKeyLocation, Auth, ParamStyle};

fn document(operation: &Value) -> Value {
    json!({
        "swagger": "2.0",
        "info": {"title": "Pets", "version": "1"},
        "host": "pets.example",
        "basePath": "/v2/",
        "schemes": ["http", "https"],
        "produces": ["application/json"],
        "securityDefinitions": {
            "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
            "basic": {"type": "basic"},
            "app": {"type": "oauth2", "flow": "application", "tokenUrl": "https://auth.example/token", "scopes": {}},
            "user": {"type": "oauth2", "flow": "implicit", "authorizationUrl": "https://auth.example", "scopes": {}},
        },
        "parameters": {
            "Limit": {"name": "limit", "in": "query", "type": "integer", "maximum": 100, "description": "How many"},
            "Pet": {"name": "pet", "in": "body", "required": true, "schema": {"$ref": "#/definitions/Pet"}},
        },
        "responses": {"Pets": {"description": "Pets", "schema": {"type": "array", "items": {"$ref": "#/definitions/Pet"}}}},
        "definitions": {"Pet": {"type": "object", "required": ["name"], "properties": {
            "name": {"type": "string"}, "tag": {"type": "string", "x-nullable": true},
            "parent": {"$ref": "#/definitions/Pet"}}}},
        "paths": {"/pets/{id}": {
            "parameters": [{"name": "id", "in": "path", "required": true, "type": "string"}],
            "post": operation,
        }},
    })
}

#[test]
fn parameters_and_responses_are_converted() {
    let tool = only(&document(&json!({
        "operationId": "findPets",
        "parameters": [
            {"$ref": "#/parameters/Limit"},
            {"name": "csv", "in": "query", "type": "array", "items": {"type": "string"}},
            {"name": "multi", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
            {"name": "pipes", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
            {"name": "X-Trace", "in": "header", "type": "string", "enum": ["on", "off"]},
        ],
        "responses": {"200": {"$ref": "#/responses/Pets"}},
    })));
    let request = &http(&tool).request;
    assert_eq!(request.url, "https://pets.example/v2/pets/${id}");
    assert_eq!(request.headers["Accept"], "application/json");
    assert_eq!(request.styles.get("csv"), Some(&ParamStyle::Comma));
    assert_eq!(request.styles.get("multi"), None);
    assert_eq!(request.styles.get("pipes"), Some(&ParamStyle::Pipe));
    let schema = tool.spec.input_schema.value();
    assert_eq!(
        schema["properties"]["limit"],
        json!({"type": "integer", "maximum": 100, "description": "How many"})
    );
    assert_eq!(schema["properties"]["X-Trace"]["enum"], json!(["on", "off"]));
    assert_eq!(schema["required"], json!(["id"]));
    assert_eq!(warnings_text(&tool), "");
}

#[test]
fn bodies_become_arguments() {
    let tool = only(&document(&json!({"parameters": [{"$ref": "#/parameters/Pet"}], "responses": {}})));
    assert_eq!(
        http(&tool).request.body,
        Some(json!({"name": "${name}", "tag": "${tag}", "parent": "${parent}"}))
    );
    let schema = tool.spec.input_schema.value();
    assert_eq!(schema["required"], json!(["id", "name"]));
    assert_eq!(schema["properties"]["tag"]["type"], json!(["string", "null"]));
    assert!(schema["$defs"]["Pet"].is_object(), "{schema}");

    let form = json!({"consumes": ["application/x-www-form-urlencoded"], "responses": {}, "parameters": [
        {"name": "name", "in": "formData", "type": "string", "required": true, "description": "Its name"},
        {"name": "tags", "in": "formData", "type": "array", "items": {"type": "string"}, "collectionFormat": "ssv"},
    ]});
    let tool = only(&document(&form));
    let request = &http(&tool).request;
    assert_eq!(request.headers["Content-Type"], "application/x-www-form-urlencoded");
    assert_eq!(request.styles.get("tags"), Some(&ParamStyle::Space));
    assert_eq!(tool.spec.input_schema.value()["properties"]["name"]["description"], "Its name");

    let upload = json!({"responses": {}, "parameters": [
        {"name": "file", "in": "formData", "type": "file", "required": true},
        {"name": "note", "in": "formData", "type": "string"},
    ]});
    let tool = only(&document(&upload));
    let request = &http(&tool).request;
    assert_eq!(
        (request.headers["Content-Type"].as_str(), &request.files),
        ("multipart/form-data", &vec!["file".to_owned()])
    );
    assert_eq!(request.body, Some(json!({"file": "${file}", "note": "${note}"})));
}

#[test]
fn security_is_converted() {
    let auth = |name: &str| {
        let tool = only(&document(&json!({"security": [{name: []}], "responses": {}})));
        http(&tool).auth.clone()
    };
    assert_eq!(
        auth("key"),
        Some(Auth::ApiKey {
            name: "X-Key".into(),
            value: "${PETS_KEY}".into(),
            location: ApiKeyLocation::Header
        })
    );
    assert!(matches!(auth("basic"), Some(Auth::Basic { .. })));
    assert!(
        matches!(auth("app"), Some(Auth::Oauth2(oauth)) if oauth.token_url == "https://auth.example/token")
    );
    assert_eq!(auth("user"), Some(Auth::Bearer { token: "${PETS_USER}".into() }));
}

#[test]
fn servers_are_converted() {
    let server = |change: &dyn Fn(&mut Value), fetched: Option<&str>| {
        let mut document = document(&json!({"responses": {}}));
        change(&mut document);
        let options = ImportOptions { document_url: fetched.map(str::to_owned), ..ImportOptions::default() };
        read(&document.to_string(), &options)
            .map(|import| import.tools[0].server.clone())
            .map_err(|error| error.code)
    };
    let url = Some("http://docs.example:8080/a/swagger.json");
    assert_eq!(server(&|_| {}, None), Ok("https://pets.example/v2".into()));
    let no_schemes = |document: &mut Value| document["schemes"] = json!([]);
    assert_eq!(server(&no_schemes, None), Ok("https://pets.example/v2".into()));
    assert_eq!(server(&no_schemes, url), Ok("http://pets.example/v2".into()));
    let no_host = |document: &mut Value| document["host"] = json!(null);
    assert_eq!(server(&no_host, url), Ok("http://docs.example:8080/v2".into()));
    assert_eq!(server(&no_host, None), Err("no_server".into()));
}

/// References in circles, to themselves and to nothing, and values of other types.
#[test]
fn hostile_documents_are_rejected_or_converted() {
    for operation in [
        json!({"parameters": [{"$ref": "#/parameters/Pet/x"}, {"$ref": "#/paths/~1pets~1{id}/post/parameters/1"}]}),
        json!({"parameters": "x", "responses": [], "consumes": {"a": 1}, "produces": [1, {}]}),
        json!({"parameters": [{"in": "body", "name": "b", "schema": {"$ref": "#/paths/~1pets~1{id}/post/parameters/0/schema"}}]}),
        json!({"parameters": [{"in": "formData"}, {"in": "formData", "type": ["file"]}, 7, null]}),
        json!({"consumes": ["a\r\nX: y"], "parameters": [{"in": "body", "name": "b", "required": true}]}),
    ] {
        let imported = read(&document(&operation).to_string(), &ImportOptions::default());
        assert!(imported.is_ok_and(|import| import.tools.len() + import.skipped.len() == 1), "{operation}");
    }
    let many: Vec<Value> =
        (0..5000).map(|n| json!({"name": format!("p{n}"), "in": "formData", "type": "string"})).collect();
    let tool = import(&document(&json!({"parameters": many})), &ImportOptions::default());
    assert!(tool.tools.len() + tool.skipped.len() == 1);
}
