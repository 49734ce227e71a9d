//! Stored credentials: fields, purposes, references.

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::{Json, Router};
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool};

async fn upstream() -> Upstream {
    Upstream::serve(Router::new().fallback(|| async { Json(json!({"organic": []})) })).await.unwrap()
}

async fn put(server: &Server, name: &str, body: Value) -> Value {
    let (status, answer) = server.put(&format!("/api/credentials/{name}"), body).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

fn http_tool(name: &str, implementation: Value) -> Value {
    let mut tool = function_tool(name, "echo");
    tool["implementation"] = implementation;
    tool
}

#[tokio::test]
async fn a_credential_has_fields_and_a_purpose() {
    let server = Server::start().await;
    let body = json!({
        "payload": {"api_key": "first-key-1", "endpoint": "https://search.example"},
        "category": "custom", "provider_key": "web_search", "provider_variant": "serper", "description": "Search",
    });
    let stored = put(&server, "search", body).await;
    assert_eq!(
        (&stored["payload"], &stored["provider_key"], &stored["provider_variant"], &stored["used_by"]),
        (&json!({"api_key": "***", "endpoint": "***"}), &json!("web_search"), &json!("serper"), &json!([]))
    );
    put(&server, "PLAIN", json!({"value": "plain-value-1"})).await;
    let (_, list) = server.get("/api/credentials").await;
    assert_eq!(list["data"]["total"], 2);
    assert_eq!(list["data"]["credentials"][0]["category"], "custom");
    let (_, list) = server.get("/api/credentials?provider_key=web_search").await;
    assert_eq!(
        (&list["data"]["total"], &list["data"]["credentials"][0]["name"]),
        (&json!(1), &json!("search"))
    );
    assert!(!list.to_string().contains("first-key-1"));

    // What is not sent stays, and a masked field keeps its value.
    let changed = json!({"payload": {"api_key": "***", "region": "eu"}, "description": "Web search"});
    let stored = put(&server, "search", changed).await;
    assert_eq!(
        (&stored["payload"], &stored["provider_variant"], &stored["description"]),
        (&json!({"api_key": "***", "region": "***"}), &json!("serper"), &json!("Web search"))
    );
    let stored = put(&server, "PLAIN", json!({"category": "llm_provider"})).await;
    assert_eq!((&stored["category"], &stored["payload"]), (&json!("llm_provider"), &json!(null)));
    for body in [
        json!({"value": "a", "payload": {"b": "c"}}),
        json!({}),
        json!({"payload": {"api_key": "***"}}),
        json!({"payload": {"api_key": 5}}),
        json!({"payload": {}}),
        json!({"payload": {"a b": "c"}}),
        json!({"value": "v", "category": "Not A Key"}),
        json!({"value": "v", "provider_variant": "serper"}),
        json!({"value": "v", "description": "x".repeat(501)}),
    ] {
        let (status, answer) = server.put("/api/credentials/fresh", body.clone()).await;
        assert_eq!(status, 400, "{body}: {answer}");
    }
    let server = server.restart().await;
    let (_, shown) = server.get("/api/credentials/search").await;
    assert_eq!(shown["data"]["payload"], json!({"api_key": "***", "region": "***"}), "{shown}");
    assert_eq!(server.get("/api/credentials/none").await.0, 404);
}

#[tokio::test]
async fn tools_refer_to_a_credential_or_to_one_of_its_fields() {
    let server = Server::start().await;
    let site = upstream().await;
    put(
        &server,
        "github",
        json!({"payload": {"token": "gh-token-1", "username": "ada", "password": "pass-word-1"}}),
    )
    .await;
    for (name, implementation) in [
        (
            "by-field",
            json!({"type": "http", "url": site.url("/"), "headers": {"X-Key": "${github.password}"}}),
        ),
        ("by-name", json!({"type": "http", "url": site.url("/"), "headers": {"X-Key": "${github}"}})),
        (
            "bearer",
            json!({"type": "http", "url": site.url("/"), "auth": {"type": "bearer", "credential": "github"}}),
        ),
        ("short", json!({"type": "http", "url": site.url("/"), "credential": "github"})),
        (
            "basic",
            json!({"type": "http", "url": site.url("/"), "auth": {"type": "basic", "credential": "github"}}),
        ),
        ("unrelated", json!({"type": "http", "url": site.url("/"), "headers": {"X-Key": "${github2}"}})),
    ] {
        let (status, answer) = server.post("/api/tools", http_tool(name, implementation)).await;
        assert_eq!(status, 201, "{answer}");
    }
    let sent = async |tool: &str, header: &str| {
        let (status, answer) = server.invoke(tool, json!({})).await;
        assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{tool}: {answer}");
        site.seen().last().unwrap().headers.get(header).cloned().unwrap_or_default()
    };
    assert_eq!(sent("by-field", "x-key").await, "pass-word-1");
    assert_eq!(sent("by-name", "x-key").await, "gh-token-1");
    assert_eq!(sent("bearer", "authorization").await, "Bearer gh-token-1");
    assert_eq!(sent("short", "authorization").await, "Bearer gh-token-1");
    assert_eq!(sent("basic", "authorization").await, "Basic YWRhOnBhc3Mtd29yZC0x");

    let (_, shown) = server.get("/api/credentials/github").await;
    let users: Vec<_> =
        shown["data"]["used_by"].as_array().unwrap().iter().map(|user| user.as_str().unwrap()).collect();
    assert_eq!(
        users,
        [
            "user-created:basic@1.0.0",
            "user-created:bearer@1.0.0",
            "user-created:by-field@1.0.0",
            "user-created:by-name@1.0.0",
            "user-created:short@1.0.0",
        ]
    );
    let (status, answer) = server.delete("/api/credentials/github").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    assert_eq!(answer["error"]["details"]["used_by"].as_array().unwrap().len(), 5);
    assert_eq!(server.delete("/api/credentials/github?force=true").await.0, 200);
    let (_, answer) = server.invoke("by-name", json!({})).await;
    assert_eq!(answer["error"]["code"], "secret_missing", "{answer}");

    // An MCP server refers to credentials, too.
    put(&server, "MCP_KEY", json!({"value": "mcp-key-value"})).await;
    let body = json!({"id": "tools", "url": "http://127.0.0.1:9/", "headers": {"X-Key": "${MCP_KEY}"}, "enabled": false});
    assert_eq!(server.post("/api/mcp-servers", body).await.0, 201);
    let (_, shown) = server.get("/api/credentials/MCP_KEY").await;
    assert_eq!(shown["data"]["used_by"], json!(["MCP server tools"]), "{shown}");
}

#[tokio::test]
async fn web_search_uses_the_credentials_in_order() {
    let server = Server::start_whole(|_| {}).await;
    let site = upstream().await;
    let key = |key: &str| json!({"api_key": key, "endpoint": site.url("/search")});
    let mut own = function_tool("own-search", "echo");
    own["implementation"] =
        json!({"type": "function", "function": "web_search", "config": {"credentials_ref": "linked"}});
    own["input_schema"] = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    server.create(own).await;
    let used = async |tool: &str| {
        let (_, answer) = server.invoke(tool, json!({"query": "x"})).await;
        if answer["ok"] != true {
            return answer["error"]["code"].as_str().unwrap().to_owned();
        }
        site.seen().last().unwrap().headers["x-api-key"].clone()
    };
    assert_eq!(used("web_search").await, "secret_missing");
    put(&server, "b", json!({"payload": key("by-provider-serper"), "provider_key": "serper"})).await;
    assert_eq!(used("web_search").await, "by-provider-serper");
    put(&server, "other", json!({"payload": key("of-another-category"), "category": "llm", "provider_key": "web_search", "provider_variant": "serper"})).await;
    assert_eq!(used("web_search").await, "by-provider-serper");
    put(&server, "a", json!({"payload": {"token": "by-web-search", "endpoint": site.url("/search")}, "provider_key": "web_search", "provider_variant": "serper"})).await;
    assert_eq!(used("web_search").await, "by-web-search", "`token` is accepted for `api_key`");
    assert_eq!(used("own-search").await, "secret_missing", "a definition never falls back to another key");
    put(&server, "linked", json!({"payload": key("linked-key")})).await;
    assert_eq!(used("own-search").await, "linked-key");
    let (_, shown) = server.get("/api/credentials/linked").await;
    assert_eq!(shown["data"]["used_by"], json!(["user-created:own-search@1.0.0"]));
}
