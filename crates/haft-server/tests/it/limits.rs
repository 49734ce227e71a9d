//! Limits: rates, calls at the same time, identical calls, what a tenant stores; on one node and on two.

use std::sync::Arc;
use std::time::Duration;

use haft_core::secret::Secret;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::mcp::client::Session;
use crate::tenants::{tenant, with};

/// A tool with settings of its execution.
fn limited_tool(name: &str, function: &str, execution: Value) -> Value {
    let mut tool = function_tool(name, function);
    tool["execution"] = execution;
    tool
}

async fn token(server: &Server, body: Value) -> (String, String) {
    let (status, answer) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{answer}");
    let text = |key: &str| answer["data"][key].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

async fn invoke_as(server: &Server, token: &str, tool: &str, args: Value) -> (u16, Value) {
    with(server, token, Method::POST, &format!("/api/tools/{tool}/invoke"), json!({"args": args})).await
}

#[tokio::test]
async fn the_rate_of_a_token_holds_and_is_reported() {
    let server = Server::start().await;
    server.create(function_tool("double", "double")).await;
    let rate = json!({"calls": 2, "per": "1m"});
    let (id, ci) = token(&server, json!({"name": "ci", "rate_limit": rate})).await;
    for remaining in ["1", "0"] {
        let request = server.bare(Method::POST, "/api/tools/double/invoke").bearer_auth(&ci);
        let response = request.body(json!({"args": {"n": 1}}).to_string()).send().await.unwrap();
        let header = |name: &str| response.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(response.status(), 200);
        assert_eq!(
            (header("ratelimit-limit"), header("ratelimit-remaining")),
            ("2".into(), remaining.into())
        );
        assert!((1..=60).contains(&header("ratelimit-reset").parse::<u64>().unwrap()));
    }
    let request = server.bare(Method::POST, "/api/tools/double/invoke").bearer_auth(&ci);
    let response = request.body(json!({"args": {"n": 1}}).to_string()).send().await.unwrap();
    assert_eq!(response.status(), 429);
    for (name, expected) in [("ratelimit-limit", "2"), ("ratelimit-remaining", "0")] {
        assert_eq!(response.headers()[name], expected);
    }
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    let details = &answer["error"]["details"];
    assert_eq!((&details["limit"], &details["value"]), (&json!("token.rate_limit"), &json!(2)), "{answer}");
    assert!(details["reset_seconds"].as_u64().unwrap().abs_diff(wait) <= 1, "{answer}");
    let text = answer["error"]["model_text"].as_str().unwrap();
    let expected =
        "Tool call failed: rate limit exceeded for this token (`rate_limit`): 2 calls per 1m; retry in ";
    assert!(text.starts_with(expected), "{text}");
    // The local token has no limit, and a refused call of one limit does not count for another.
    assert_eq!(server.invoke("double", json!({"n": 1})).await.0, 200);

    let path = format!("/api/tokens/{id}");
    let (status, answer) = server.patch(&path, json!({"rate_limit": {"calls": 3, "per": "60s"}})).await;
    assert_eq!((status, &answer["data"]["rate_limit"]), (200, &json!({"calls": 3, "per": "1m"})), "{answer}");
    assert_eq!(invoke_as(&server, &ci, "double", json!({"n": 1})).await.0, 200);
    assert_eq!(invoke_as(&server, &ci, "double", json!({"n": 1})).await.0, 429, "counted calls stay counted");
    assert_eq!(server.patch(&path, json!({"rate_limit": null})).await.0, 200);
    assert_eq!(invoke_as(&server, &ci, "double", json!({"n": 1})).await.0, 200);
}

#[tokio::test]
async fn invalid_rates_are_rejected_by_name() {
    let server = Server::start().await;
    for (body, field) in [
        (json!({"calls": 0, "per": "1m"}), "rate_limit.calls"),
        (json!({"calls": 1, "per": "0s"}), "rate_limit.per"),
        (json!({"calls": 1, "per": "often"}), "rate_limit.per"),
        (json!({"calls": 1, "per": "1000h"}), "rate_limit.per"),
        (json!({"calls": -1, "per": "1m"}), "rate_limit"),
        (json!({"calls": 1}), "per"),
        (json!({"calls": 1, "per": "1m", "burst": 1}), "burst"),
        (json!([1, "1m"]), "rate_limit"),
    ] {
        let (status, answer) = server.post("/api/tokens", json!({"name": "ci", "rate_limit": body})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(status == 400 && message.contains(field), "{body}: {answer}");
    }
    let (id, admin) =
        token(&server, json!({"name": "admin", "role": "admin", "rate_limit": {"calls": 60, "per": "1m"}}))
            .await;
    for (rate, expected) in
        [(json!({"calls": 1, "per": "1s"}), 201), (json!({"calls": 61, "per": "1m"}), 403)]
    {
        let body = json!({"name": "ci", "rate_limit": rate});
        assert_eq!(with(&server, &admin, Method::POST, "/api/tokens", body).await.0, expected, "{rate}");
    }
    // The default is the rate of the creating token.
    for body in [json!({"name": "ci"}), json!({"name": "ci", "rate_limit": null})] {
        let (status, answer) = with(&server, &admin, Method::POST, "/api/tokens", body).await;
        assert_eq!((status, &answer["data"]["rate_limit"]), (201, &json!({"calls": 60, "per": "1m"})));
    }
    let own = format!("/api/tokens/{id}");
    assert_eq!(with(&server, &admin, Method::PATCH, &own, json!({"rate_limit": null})).await.0, 403);
    assert_eq!(server.patch(&own, json!({})).await.0, 400);
    assert_eq!(server.patch(&own, json!({"rate": null})).await.0, 400);
}

#[tokio::test]
async fn the_rate_of_a_session_counts_chats_and_mcp_sessions_apart() {
    let server = Server::start_with(|settings| settings.limits.session_calls_per_minute = 2).await;
    server.create(function_tool("double", "double")).await;
    let call = async |chat: Value, n: u32| {
        let body = json!({"args": {"n": n}, "chat_id": chat});
        server.post("/api/tools/double/invoke", body).await
    };
    for n in 0..2 {
        assert_eq!(call(json!("a"), n).await.0, 200);
    }
    let (status, answer) = call(json!("a"), 3).await;
    assert_eq!(status, 429, "{answer}");
    assert_eq!(answer["error"]["details"]["limit"], "limits.session_calls_per_minute");
    assert_eq!(call(json!("b"), 3).await.0, 200);
    for n in 0..5 {
        assert_eq!(call(Value::Null, n).await.0, 200, "no session, no limit");
    }
    let session = Session::open(&server, "/mcp", &server.token, "2025-06-18").await;
    let other = Session::open(&server, "/mcp", &server.token, "2025-06-18").await;
    let call = async |session: &Session<'_>, n: u32| {
        let answer = session.ask("tools/call", json!({"name": "double", "arguments": {"n": n}})).await;
        answer.last()["result"]["isError"] == json!(true)
    };
    let refused = [call(&session, 1).await, call(&session, 2).await, call(&session, 3).await];
    assert_eq!((refused, call(&other, 4).await), ([false, false, true], false));
}

#[tokio::test]
async fn identical_calls_in_a_row_are_refused() {
    let server = Server::start_with(|settings| settings.limits.identical_calls = 3).await;
    server.create(function_tool("double", "double")).await;
    let call = async |n: u32| {
        let body = json!({"args": {"n": n}, "chat_id": "a"});
        server.post("/api/tools/double/invoke", body).await
    };
    for _ in 0..3 {
        assert_eq!(call(1).await.0, 200);
    }
    let (status, answer) = call(1).await;
    assert_eq!(
        (status, &answer["error"]["details"]["limit"]),
        (429, &json!("limits.identical_calls")),
        "{answer}"
    );
    let text = answer["error"]["model_text"].as_str().unwrap();
    assert!(text.contains("`double` was called 3 times in a row with the same arguments"), "{text}");
    assert_eq!(call(2).await.0, 200, "other arguments");
    assert_eq!(call(1).await.0, 200, "no longer in a row");
    for _ in 0..10 {
        assert_eq!(server.invoke("double", json!({"n": 1})).await.0, 200, "without a session");
    }
}

#[tokio::test]
async fn calls_of_a_tenant_at_the_same_time_wait() {
    let server = Arc::new(Server::start().await);
    let acme = tenant(&server, "acme").await;
    server.patch("/api/tenants/acme", json!({"limits": {"max_parallel": 1}})).await;
    let create = with(&server, &acme, Method::POST, "/api/tools", function_tool("gate", "gate")).await;
    assert_eq!(create.0, 201, "{}", create.1);
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let (server, acme) = (Arc::clone(&server), acme.clone());
            tokio::spawn(async move { invoke_as(&server, &acme, "gate", json!({})).await.0 })
        })
        .collect();
    server.gate.entered(1).await;
    let used = poll(async || {
        let (_, answer) = with(&server, &acme, Method::GET, "/api/limits", Value::Null).await;
        let limits = answer["data"]["limits"].as_array().unwrap().clone();
        let limit = limits.into_iter().find(|limit| limit["name"] == "tenant.max_parallel").unwrap();
        (limit["used"] == 3).then_some(limit)
    })
    .await;
    assert_eq!(used["value"], 1);
    assert!(tokio::time::timeout(Duration::from_millis(200), server.gate.entered(2)).await.is_err());
    server.gate.open();
    for call in calls {
        assert_eq!(call.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn a_tenant_stores_no_more_than_its_limits() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    server.patch("/api/tenants/acme", json!({"limits": {"max_tools": 2}})).await;
    let create = async |name: &str| {
        with(&server, &acme, Method::POST, "/api/tools", function_tool(name, "double")).await
    };
    assert_eq!((create("a").await.0, create("b").await.0), (201, 201));
    let (status, answer) = create("c").await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    let expected = json!({"limit": "tenant.max_tools", "value": 2, "reset_seconds": null});
    assert_eq!(answer["error"]["details"], expected);
    assert_eq!(with(&server, &acme, Method::DELETE, "/api/tools/a", Value::Null).await.0, 200);
    assert_eq!(create("c").await.0, 201);

    server.patch("/api/tenants/acme", json!({"limits": {"max_stored_bytes": 3000}})).await;
    let mut long = function_tool("long", "double");
    long["description"] = json!("x".repeat(3000));
    let (status, answer) = with(&server, &acme, Method::POST, "/api/tools", long.clone()).await;
    assert_eq!((status, &answer["error"]["details"]["limit"]), (409, &json!("tenant.max_stored_bytes")));
    long["name"] = json!("b");
    let (status, answer) = with(&server, &acme, Method::PUT, "/api/tools/b", long).await;
    assert_eq!((status, &answer["error"]["details"]["limit"]), (409, &json!("tenant.max_stored_bytes")));
    // The default tenant has no such limit.
    assert_eq!(server.post("/api/tools", function_tool("c", "double")).await.0, 201);
}

#[tokio::test]
async fn limits_are_listed_with_their_use() {
    let server = Server::start_with(|settings| settings.limits.session_calls_per_minute = 9).await;
    let rate = json!({"calls": 5, "per": "1m"});
    server
        .create(limited_tool("double", "double", json!({"rate_limit": rate, "limits": {"max_parallel": 4}})))
        .await;
    let (_, ci) = token(&server, json!({"name": "ci", "rate_limit": {"calls": 3, "per": "1h"}})).await;
    server.patch("/api/tenants/default", json!({"limits": {
            "calls_per_minute": 600, "max_tools": 50, "max_chats": 7, "max_messages_per_chat": 9, "max_parallel_runs": 2,
        }})).await;
    assert_eq!(invoke_as(&server, &ci, "double", json!({"n": 1})).await.0, 200);
    let (status, answer) = server.get("/api/limits").await;
    assert_eq!((status, &answer["data"]["shared"]), (200, &json!(false)), "{answer}");
    let limits = answer["data"]["limits"].as_array().unwrap();
    let row = |name: &str| {
        let limit = limits.iter().find(|limit| limit["name"] == name);
        let limit = limit.unwrap_or_else(|| panic!("{name} in {answer}"));
        json!([limit["subject"], limit["value"], limit["per"], limit["used"], limit["remaining"]])
    };
    for (name, expected) in [
        ("server.max_running_calls", json!([null, 1024, null, 0, 1024])),
        ("limits.session_calls_per_minute", json!([null, 9, "1m", null, null])),
        ("limits.identical_calls", json!([null, 20, "1m", null, null])),
        ("tenant.calls_per_minute", json!([null, 600, "1m", 1, 599])),
        ("tenant.max_tools", json!([null, 50, null, 1, 49])),
        ("tenant.max_queued_calls", json!([null, 100_000, null, 0, 100_000])),
        ("tenant.max_chats", json!([null, 7, null, 0, 7])),
        ("tenant.max_messages_per_chat", json!([null, 9, null, null, null])),
        ("tenant.max_parallel_runs", json!([null, 2, null, 0, 2])),
        ("token.rate_limit", json!(["ci", 3, "1h", 1, 2])),
        ("tool.rate_limit", json!(["user-created:double@1.0.0", 5, "1m", 1, 4])),
        ("tool.max_parallel", json!(["user-created:double@1.0.0", 4, null, 0, 4])),
    ] {
        assert_eq!(row(name), expected, "{name}");
    }
    // A caller sees the limit of its own token only.
    let (_, other) = token(&server, json!({"name": "other"})).await;
    let (_, answer) = with(&server, &other, Method::GET, "/api/limits", Value::Null).await;
    assert!(!answer.to_string().contains("token.rate_limit"), "{answer}");
}

#[tokio::test]
async fn running_calls_of_a_disabled_tenant_are_cancelled() {
    let server = Arc::new(Server::start().await);
    let acme = tenant(&server, "acme").await;
    with(&server, &acme, Method::POST, "/api/tools", function_tool("gate", "gate")).await;
    let start = || {
        let (server, acme) = (Arc::clone(&server), acme.clone());
        tokio::spawn(async move { invoke_as(&server, &acme, "gate", json!({})).await })
    };
    let running = start();
    let queued =
        with(&server, &acme, Method::POST, "/api/tools/gate/invoke?async=true", json!({"args": {}})).await;
    assert_eq!(queued.0, 202, "{}", queued.1);
    server.gate.entered(2).await;
    assert_eq!(server.patch("/api/tenants/acme", json!({"enabled": false})).await.0, 200);
    let (_, answer) = running.await.unwrap();
    assert_eq!(code(&answer), "cancelled", "{answer}");
    assert_eq!(server.patch("/api/tenants/acme", json!({"enabled": true})).await.0, 200);
    let path = format!("/api/calls/{}", queued.1["call_id"].as_str().unwrap());
    poll(async || {
        let (_, answer) = with(&server, &acme, Method::GET, &path, Value::Null).await;
        (answer["data"]["status"] == "cancelled").then_some(())
    })
    .await;
    server.gate.open();
    assert_eq!(start().await.unwrap().0, 200, "an enabled tenant can call again");
}

#[tokio::test]
async fn metrics_count_by_tool_and_limit() {
    let server = Server::start_with(|settings| settings.metrics.top_tools = 1).await;
    server.create(limited_tool("one", "double", json!({"rate_limit": {"calls": 1, "per": "1m"}}))).await;
    server.create(function_tool("two", "double")).await;
    for tool in ["one", "one", "two"] {
        server.invoke(tool, json!({"n": 1})).await;
    }
    let text = server.request(Method::GET, "/metrics").send().await.unwrap().text().await.unwrap();
    let tool = "tenant=\"default\",tool=\"user-created:one@1.0.0\"";
    for line in [
        format!("haft_tool_calls_total{{{tool},status=\"success\"}} 1"),
        format!("haft_tool_calls_total{{{tool},status=\"rejected\"}} 1"),
        format!("haft_tool_call_seconds_count{{{tool}}} 1"),
        "haft_tool_calls_total{tenant=\"other\",tool=\"other\",status=\"success\"} 1".to_owned(),
        "haft_limit_refusals_total{limit=\"tool.rate_limit\"} 1".to_owned(),
        "haft_limit_refusals_total{limit=\"tenant.max_parallel\"} 0".to_owned(),
        "haft_calls_total{outcome=\"rejected\"} 1".to_owned(),
        "haft_calls_queued 0".to_owned(),
        "haft_calls_awaiting_approval 0".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

async fn on(url: &str) -> Server {
    let url = url.to_owned();
    Server::start_with(move |settings| {
        settings.database_url = Some(Secret::new(url));
        settings.key = Some(Secret::new("00".repeat(32)));
        settings.token = Some(Secret::new("t".repeat(40)));
    })
    .await
}

async fn two_nodes(url: &str, tools: &[Value]) -> [Arc<Server>; 2] {
    let (one, other) = (on(url).await, on(url).await);
    for tool in tools {
        one.create(tool.clone()).await;
        let path = format!("/api/tools/{}", tool["name"].as_str().unwrap());
        poll(async || (other.get(&path).await.0 == 200).then_some(())).await;
    }
    [Arc::new(one), Arc::new(other)]
}

#[tokio::test]
async fn two_nodes_share_a_rate() {
    let database = crate::postgres::database().await;
    let limited = |name: &str, calls: u32| {
        limited_tool(name, "double", json!({"rate_limit": {"calls": calls, "per": "1m"}}))
    };
    let nodes = two_nodes(&database.url, &[limited("few", 6), limited("many", 160)]).await;
    // Small rates are exact, whichever node is called.
    let mut statuses = Vec::new();
    for number in 0..10 {
        statuses.push(nodes[usize::from(number % 3 == 0)].invoke("few", json!({"n": 1})).await.0);
    }
    assert_eq!(statuses, [200, 200, 200, 200, 200, 200, 429, 429, 429, 429]);
    let (_, answer) = nodes[0].get("/api/limits").await;
    let limits = answer["data"]["limits"].as_array().unwrap();
    let few = limits.iter().find(|limit| limit["subject"] == "user-created:few@1.0.0").unwrap();
    assert_eq!((&few["used"], &answer["data"]["shared"]), (&json!(6), &json!(true)), "{answer}");

    // Many at once: never more than the rate, and at most a draw of each node unused.
    let calls: Vec<_> = (0..400)
        .map(|number| {
            let node = Arc::clone(&nodes[number % 2]);
            tokio::spawn(async move { node.invoke("many", json!({"n": 1})).await.0 })
        })
        .collect();
    let mut made = 0;
    for call in calls {
        made += usize::from(call.await.unwrap() == 200);
    }
    assert!((140..=160).contains(&made), "{made}");
}

#[tokio::test]
async fn two_nodes_share_the_calls_at_the_same_time() {
    let database = crate::postgres::database().await;
    let tool = limited_tool("gate", "gate", json!({"limits": {"max_parallel": 1}}));
    let [one, other] = two_nodes(&database.url, &[tool]).await;
    let call = |node: &Arc<Server>| {
        let node = Arc::clone(node);
        tokio::spawn(async move { send(node.request(Method::POST, "/api/tools/gate/invoke")).await.0 })
    };
    let first = call(&one);
    one.gate.entered(1).await;
    let second = call(&other);
    assert!(tokio::time::timeout(Duration::from_millis(500), other.gate.entered(1)).await.is_err());
    one.gate.open();
    assert_eq!(first.await.unwrap(), 200);
    other.gate.entered(1).await;
    other.gate.open();
    assert_eq!(second.await.unwrap(), 200);
    // Both have released their place.
    assert_eq!((call(&one).await.unwrap(), call(&other).await.unwrap()), (200, 200));
}
