//! Filters of calls, their histogram, and the numbers of the home page.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool};
use crate::tenants::{tenant, with};

/// Starts a server with two successful calls, a failed one, and one that was rejected.
async fn server_with_calls() -> Server {
    let server = Server::start().await;
    for function in ["echo", "fail"] {
        server.create(function_tool(function, function)).await;
    }
    for (tool, args) in
        [("echo", json!({"city": "Bern"})), ("fail", json!({})), ("echo", json!({"city": "Oslo"}))]
    {
        assert_eq!(server.invoke(tool, args).await.0, 200);
    }
    server
}

async fn total(server: &Server, query: &str) -> Value {
    let (status, answer) = server.get(&format!("/api/calls?{query}")).await;
    assert_eq!(status, 200, "{query}: {answer}");
    answer["data"]["total"].clone()
}

#[tokio::test]
async fn calls_are_filtered_by_statuses_surface_parent_and_text() {
    let server = server_with_calls().await;
    let (_, tested) = server.post("/api/tools/echo/test", json!({"parameters": {}})).await;
    for (query, expected) in [
        ("status=success", 3),
        ("status=error", 1),
        ("status=success,error", 4),
        ("status=success&status=error", 4),
        ("status=pending,running", 0),
        ("surface=rest", 3),
        ("surface=test", 1),
        ("surface=res", 0),
        ("text=bern", 1),
        ("text=BERN", 1),
        ("text=city", 0),
        ("q=oslo", 1),
        ("text=connection", 1),
        ("surface=rest&status=success&text=o", 2),
    ] {
        assert_eq!(total(&server, query).await, expected, "{query}");
    }
    let call = tested["data"]["call_id"].as_str().unwrap();
    assert_eq!(total(&server, &format!("parent_id={call}")).await, 0);
    for query in [
        "status=succes",
        "status=success,",
        "status=",
        "parent_id=7",
        "q=a&text=b",
        &format!("text={}", "x".repeat(201)),
    ] {
        let (status, answer) = server.get(&format!("/api/calls?{query}")).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{query}: {answer}");
    }
}

async fn histogram(server: &Server, query: &str) -> Value {
    let (status, answer) = server.get(&format!("/api/calls/histogram?{query}")).await;
    assert_eq!(status, 200, "{query}: {answer}");
    answer["data"].clone()
}

/// Returns the sums of all buckets.
fn sums(histogram: &Value) -> [u64; 3] {
    let buckets = histogram["buckets"].as_array().unwrap();
    ["success", "error", "other"]
        .map(|field| buckets.iter().map(|bucket| bucket[field].as_u64().unwrap()).sum())
}

#[tokio::test]
async fn the_histogram_counts_every_call_once() {
    let server = server_with_calls().await;
    let whole = histogram(&server, "since=1h&until=2099-01-01T00:00:00Z").await;
    assert_eq!(sums(&whole), [2, 1, 0], "{whole}");
    let default = histogram(&server, "").await;
    assert_eq!(
        (default["bucket_seconds"].as_i64(), default["buckets"].as_array().unwrap().len()),
        (Some(1440), 60)
    );
    assert_eq!(default["buckets"][0]["at"], default["from"]);
    for (query, expected) in [
        ("buckets=1", [2, 1, 0]),
        ("buckets=500", [2, 1, 0]),
        ("tool=echo", [2, 0, 0]),
        ("status=error", [0, 1, 0]),
        ("surface=cli", [0, 0, 0]),
        ("text=bern", [1, 0, 0]),
        ("error_code=execution_failed", [0, 1, 0]),
        ("since=2020-01-01T00:00:00Z&until=2021-01-01T00:00:00Z&buckets=12", [0, 0, 0]),
    ] {
        let until = if query.contains("until") { "" } else { "&until=2099-01-01T00:00:00Z" };
        let since = if query.contains("since") { "" } else { "&since=1h" };
        let found = histogram(&server, &format!("{query}{since}{until}")).await;
        assert_eq!(sums(&found), expected, "{query}: {found}");
    }
    for query in ["buckets=0", "buckets=501", "buckets=x", "since=1h&until=2h", "since=nonsense"] {
        let (status, answer) = server.get(&format!("/api/calls/histogram?{query}")).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{query}: {answer}");
    }
}

#[tokio::test]
async fn counts_cover_what_the_token_sees() {
    let server = server_with_calls().await;
    let path = "/api/calls/histogram?since=1h&until=2099-01-01T00:00:00Z";
    let stranger = tenant(&server, "acme").await;
    let (_, made) = server.post("/api/tokens", json!({"name": "agent", "role": "caller"})).await;
    let agent = made["data"]["token"].as_str().unwrap().to_owned();
    with(&server, &agent, Method::POST, "/api/tools/echo/invoke", json!({"args": {}})).await;
    for (token, expected) in [(&stranger, [0, 0, 0]), (&agent, [1, 0, 0]), (&server.token, [3, 1, 0])] {
        let (_, answer) = with(&server, token, Method::GET, path, Value::Null).await;
        assert_eq!(sums(&answer["data"]), expected, "{answer}");
        let (_, stats) = with(&server, token, Method::GET, "/api/stats", Value::Null).await;
        assert_eq!(stats["data"]["calls_24h"], expected.iter().sum::<u64>(), "{stats}");
    }
}

#[tokio::test]
async fn the_numbers_of_the_home_page() {
    let server = server_with_calls().await;
    let mut guarded = function_tool("guarded", "echo");
    guarded["requires_confirmation"] = json!(true);
    server.create(guarded).await;
    server.create(function_tool("broken", "missing_function")).await;
    server.create(function_tool("off", "echo")).await;
    server.patch("/api/tools/off", json!({"enabled": false})).await;
    let mut warned = json!({"name": "warned", "description": "x", "input_schema": {"type": "object"}});
    warned["implementation"] = json!({"type": "http", "url": "http://127.0.0.1:9/${MISSING_SECRET}"});
    server.create(warned).await;
    let (_, made) = server.post("/api/tokens", json!({"name": "agent", "role": "caller"})).await;
    let agent = made["data"]["token"].as_str().unwrap();
    let path = "/api/tools/guarded/invoke";
    assert_eq!(with(&server, agent, Method::POST, path, json!({"args": {}})).await.0, 202);
    let (status, answer) = server.get("/api/stats").await;
    assert_eq!(status, 200, "{answer}");
    // Two built-in tools of the harness; `echo`, `fail`, `guarded` and `warned` are ready, too.
    assert_eq!(
        answer["data"],
        json!({
            "calls_per_minute": 4, "calls_24h": 4, "failures_24h": 1, "approvals_waiting": 1,
            "tools": {"total": 8, "ready": 6, "failed": 1, "warnings": 1, "disabled": 1},
            "servers": {"total": 0, "ready": 0, "attention": 0},
        })
    );
    server.post("/api/mcp-servers", json!({"id": "gone", "url": "http://127.0.0.1:9/mcp"})).await;
    let servers = crate::harness::poll(async || {
        let servers = server.get("/api/stats").await.1["data"]["servers"].clone();
        (servers["attention"] == 1).then_some(servers)
    })
    .await;
    assert_eq!(servers, json!({"total": 1, "ready": 0, "attention": 1}));
}
