//! Examples of tools: stored, shared in the tenant, run as tests.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool};
use crate::tenants::{tenant, with};

#[tokio::test]
async fn examples_are_stored_replaced_and_deleted_with_their_tool() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let path = "/api/tools/echo/examples";
    assert_eq!(server.get(path).await.1["data"], json!({"examples": []}));
    let body = json!({"args": {"a": 1}, "description": "one", "expect": null});
    let (status, answer) = server.put(&format!("{path}/the%20first"), body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let expected = json!({"name": "the first", "args": {"a": 1}, "description": "one", "expect": null});
    assert_eq!(answer["data"], expected);
    assert_eq!(server.put(&format!("{path}/another"), json!({"args": {}})).await.0, 200);
    let replaced = json!({"args": {"a": 2}});
    assert_eq!(server.put(&format!("{path}/the%20first"), replaced).await.0, 200);
    let server = server.restart().await;
    let expected = json!([{"name": "another", "args": {}}, {"name": "the first", "args": {"a": 2}}]);
    assert_eq!(server.get("/tools/echo/examples").await.1["data"]["examples"], expected);
    assert_eq!(server.delete(&format!("{path}/another")).await.0, 200);
    let (status, answer) = server.delete(&format!("{path}/another")).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
    assert_eq!(server.delete("/api/tools/echo").await.0, 200);
    server.create(function_tool("echo", "echo")).await;
    assert_eq!(server.get(path).await.1["data"], json!({"examples": []}), "another tool of the same name");
    let (_, audit) = server.get("/api/audit?action=example.put").await;
    assert_eq!(audit["data"]["total"], 3, "{audit}");
}

#[tokio::test]
async fn limits_and_roles_of_examples() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let path = |name: &str| format!("/api/tools/echo/examples/{name}");
    for (name, body, expected) in [
        ("a%2Fb", json!({"args": {}}), (400, "invalid_request")),
        ("a", json!({"args": []}), (400, "invalid_request")),
        ("a", json!({}), (400, "invalid_request")),
        ("a", json!({"args": {}, "extra": 1}), (400, "invalid_request")),
        ("a", json!({"args": {}, "description": "\0"}), (400, "invalid_request")),
        ("a", json!({"args": {"text": "x".repeat(64 * 1024)}}), (413, "too_large")),
    ] {
        let (status, answer) = server.put(&path(name), body).await;
        assert_eq!((status, code(&answer)), expected, "{name}: {answer}");
    }
    for number in 0..50 {
        assert_eq!(server.put(&path(&number.to_string()), json!({"args": {}})).await.0, 200);
    }
    let (status, answer) = server.put(&path("more"), json!({"args": {}})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert_eq!(server.put(&path("7"), json!({"args": {"n": 7}})).await.0, 200, "an existing one is replaced");
    let (_, made) = server.post("/api/tokens", json!({"name": "viewer", "role": "viewer"})).await;
    let viewer = made["data"]["token"].as_str().unwrap();
    for (method, path, status) in [
        (Method::GET, "/api/tools/echo/examples", 200),
        (Method::PUT, "/api/tools/echo/examples/x", 403),
        (Method::DELETE, "/api/tools/echo/examples/7", 403),
        (Method::POST, "/api/tools/echo/examples/run", 403),
    ] {
        let answer = with(&server, viewer, method, path, json!({"args": {}})).await;
        assert_eq!(answer.0, status, "{path}: {}", answer.1);
    }
}

#[tokio::test]
async fn a_global_tool_has_examples_of_each_tenant() {
    let server = Server::start().await;
    let stranger = tenant(&server, "acme").await;
    let path = "/api/tools/hello/examples";
    assert_eq!(server.put(&format!("{path}/mine"), json!({"args": {"a": "secret-word"}})).await.0, 200);
    let (_, answer) = with(&server, &stranger, Method::GET, path, Value::Null).await;
    assert_eq!(answer["data"], json!({"examples": []}));
    let (status, _) = with(&server, &stranger, Method::DELETE, &format!("{path}/mine"), Value::Null).await;
    assert_eq!(status, 404);
    let (_, run) = with(&server, &stranger, Method::POST, &format!("{path}/run"), Value::Null).await;
    assert_eq!(run["data"], json!({"results": []}));
}

#[tokio::test]
async fn examples_run_as_tests() {
    let server = Server::start().await;
    let mut tool = function_tool("echo", "echo");
    tool["input_schema"] = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    for (name, body) in [
        ("any", json!({"args": {"n": 1}})),
        ("equal", json!({"args": {"n": 2}, "expect": {"n": 2}})),
        ("invalid", json!({"args": {"n": "x"}})),
        ("other", json!({"args": {"n": 3}, "expect": {"n": 4}})),
    ] {
        assert_eq!(server.put(&format!("/api/tools/echo/examples/{name}"), body).await.0, 200);
    }
    let (status, answer) = server.post("/api/tools/echo/examples/run", Value::Null).await;
    assert_eq!(status, 200, "{answer}");
    let results = answer["data"]["results"].as_array().unwrap();
    let statuses: Vec<_> =
        results.iter().map(|one| (one["name"].as_str().unwrap(), one["status"].as_str().unwrap())).collect();
    assert_eq!(statuses, [("any", "passed"), ("equal", "passed"), ("invalid", "error"), ("other", "failed")]);
    assert_eq!(
        (&results[0]["outcome"]["ok"], &results[0]["outcome"]["value"]),
        (&json!(true), &json!({"n": 1}))
    );
    assert_eq!(results[2]["error_code"], "invalid_arguments", "{answer}");
    assert_eq!(results[3]["message"], "the value differs from the expected one");
    let call = results[3]["outcome"]["call_id"].as_str().unwrap();
    assert_eq!(server.get(&format!("/api/calls/{call}")).await.1["data"]["surface"], "test");
}
