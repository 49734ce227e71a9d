//! Definitions for models: formats, strict mode, token counts, and calls by alias.

use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool};

fn with_schema(name: &str, schema: &Value) -> Value {
    let mut tool = function_tool(name, "echo");
    tool["input_schema"] = schema.clone();
    tool
}

#[tokio::test]
async fn strict_definitions_are_rewritten_or_reported() {
    let server = Server::start().await;
    let weather = json!({"type": "object", "required": ["city"], "properties": {
        "city": {"type": "string", "minLength": 1}, "unit": {"enum": ["C", "F"]},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}, "required": ["lat"]},
    }});
    server.create(with_schema("weather", &weather)).await;
    let free = json!({"type": "object", "properties": {"labels": {"type": "object"}}});
    server.create(with_schema("free", &free)).await;

    let (_, answer) = server.get("/api/tools/weather/definition?format=openai-responses&strict=true").await;
    let nullable_place = json!({"type": ["object", "null"], "properties": {"lat": {"type": "number"}},
        "required": ["lat"], "additionalProperties": false});
    let parameters = json!({"type": "object", "properties": {
        "city": {"type": "string", "description": "minLength: 1"},
        "unit": {"type": ["string", "null"], "enum": ["C", "F", null]}, "place": nullable_place,
    }, "required": ["city", "unit", "place"], "additionalProperties": false});
    let expected = json!({"type": "function", "name": "weather", "description": "Runs a function of the tests",
        "parameters": parameters, "strict": true});
    assert_eq!(
        answer,
        json!({"status": "success", "data": expected, "tokens": 103, "warnings": []}),
        "{answer}"
    );
    // What a strict model sends is taken: null is left out where the schema has no null.
    let sent = json!({"city": "Oslo", "unit": null, "place": null});
    let (status, answer) = server.invoke("weather", sent).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"city": "Oslo"})), "{answer}");
    let (status, answer) = server.invoke("weather", json!({"city": null, "unit": null})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_arguments"));
    assert_eq!(answer["error"]["details"]["violations"].as_array().map(Vec::len), Some(1), "{answer}");

    let (_, answer) = server.get("/api/tools/definitions/all?strict=true").await;
    let strict: Vec<_> =
        answer["data"].as_array().unwrap().iter().map(|d| &d["function"]["strict"]).collect();
    assert_eq!(strict.iter().filter(|strict| ***strict == json!(false)).count(), 1, "{answer}");
    insta::assert_json_snapshot!(answer["warnings"], @r#"
    [
      {
        "tool": "user-created:free@1.0.0",
        "field": "input_schema.labels",
        "code": "not_strict",
        "message": "strict mode does not support objects with arbitrary keys; declare the properties"
      }
    ]
    "#);
    let by_name = answer["tokens_by_name"].as_object().unwrap();
    let sum: u64 = by_name.values().filter_map(Value::as_u64).sum();
    assert_eq!((by_name.len(), answer["tokens"].as_u64()), (4, Some(sum)));

    let (status, answer) = server.get("/api/tools/weather/definition?format=gemini&strict=true").await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
}

#[tokio::test]
async fn arguments_can_use_the_names_given_to_models() {
    let server = Server::start().await;
    let odd = json!({"type": "object", "properties": {"$top": {"type": "integer"}}, "required": ["$top"]});
    server.create(with_schema("odd", &odd)).await;
    for format in ["openai", "anthropic", "gemini"] {
        let (_, answer) = server.get(&format!("/api/tools/odd/definition?format={format}")).await;
        let text = answer["data"].to_string();
        assert!(!text.contains("$top"), "{text}");
        assert_eq!(answer["warnings"][0]["code"], "renamed_argument", "{answer}");
    }
    let (_, answer) = server.get("/api/tools/odd/definition?format=anthropic").await;
    let reported = answer["data"]["input_schema"]["required"][0].as_str().unwrap().to_owned();
    for name in ["$top", &reported] {
        let (status, answer) = server.invoke("odd", json!({name: 3})).await;
        assert_eq!((status, &answer["value"]), (200, &json!({"$top": 3})), "{answer}");
    }
}

#[tokio::test]
async fn a_name_that_starts_with_a_digit_gets_an_alias() {
    let server = Server::start().await;
    server.create(function_tool("3d-print", "echo")).await;
    let (_, answer) = server.get("/api/tools/3d-print/definition?format=gemini").await;
    let reported = answer["data"]["name"].as_str().unwrap().to_owned();
    assert!(reported.starts_with("_3d-print_"), "{reported}");
    for name in ["3d-print", &reported] {
        let (status, answer) = server.invoke(name, json!({"a": 1})).await;
        assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{name} {answer}");
    }
}

#[tokio::test]
async fn definitions_are_filtered_by_bundle_tag_and_name() {
    let server = Server::start().await;
    for (name, bundle, tag) in [("one", "alpha", "x"), ("two", "alpha", "y"), ("three", "beta", "x")] {
        let mut tool = function_tool(name, "echo");
        tool["tags"] = json!([tag]);
        let (status, answer) = server.post(&format!("/api/tools?bundle={bundle}"), tool).await;
        assert_eq!(status, 201, "{answer}");
    }
    let (_, three) = server.get("/api/tools/three").await;
    let (id, bundle) = (three["data"]["id"].as_str().unwrap(), three["data"]["bundle_id"].as_str().unwrap());
    for (query, expected) in [
        ("bundle=alpha".to_owned(), vec!["one", "two"]),
        (format!("bundle={bundle}"), vec!["three"]),
        ("bundle=alpha,beta&tag=x".to_owned(), vec!["one", "three"]),
        ("tag=x,y".to_owned(), vec!["one", "three", "two"]),
        ("names=two,beta:three".to_owned(), vec!["three", "two"]),
        (format!("names={id},alpha:one@1.0.0&tag=x"), vec!["one", "three"]),
        ("names=tool-builtin-hello".to_owned(), vec!["hello"]),
        ("bundle=nothing".to_owned(), vec![]),
    ] {
        let (status, answer) = server.get(&format!("/api/tools/definitions/all?{query}")).await;
        assert_eq!(status, 200, "{query}: {answer}");
        let names: Vec<_> =
            answer["data"].as_array().unwrap().iter().map(|d| &d["function"]["name"]).collect();
        assert_eq!(names, expected, "{query}");
        let counted = answer["tokens_by_name"].as_object().map_or(0, serde_json::Map::len);
        assert_eq!(counted, expected.len(), "{query}");
    }
    let (status, answer) = server.get("/api/tools/definitions/all?names=one,thre").await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
    assert_eq!(answer["error"]["message"], "callable tool `thre` not found; did you mean `three`?");
}

#[tokio::test]
async fn a_misspelled_field_that_matters_is_named() {
    let server = Server::start().await;
    let mut tool = function_tool("careful", "echo");
    tool["requires_confirmatoin"] = json!(true);
    let (status, answer) = server.post("/api/tools", tool).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("did you mean `requires_confirmation`?"), "{answer}");
}
