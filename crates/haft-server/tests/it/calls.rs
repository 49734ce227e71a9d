//! Calls: outcomes, errors, records, background calls, idempotency.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};

/// The coerced arguments are recorded.
#[tokio::test]
async fn arguments_are_coerced_if_the_definition_allows_it() {
    let server = Server::start().await;
    let schema = json!({"type": "object", "required": ["query"], "properties": {
        "query": {"type": "string"}, "limit": {"type": "integer"}, "tags": {"type": "array"}}});
    for (name, validation) in [("strict", "strict"), ("lenient", "coerce")] {
        let mut tool = function_tool(name, "echo");
        tool["input_schema"] = schema.clone();
        tool["execution"] = json!({"validation": validation});
        server.create(tool).await;
    }
    let args = json!({"q": "cats", "limit": "3", "tags": "[\"a\"]"});
    let (status, answer) = server.invoke("strict", args.clone()).await;
    assert_eq!((status, code(&answer)), (400, "invalid_arguments"), "{answer}");
    let (status, answer) = server.invoke("lenient", args).await;
    let expected = json!({"query": "cats", "limit": 3, "tags": ["a"]});
    assert_eq!((status, &answer["value"]), (200, &expected), "{answer}");
    let (_, record) = server.get(&format!("/api/calls/{}", answer["call_id"].as_str().unwrap())).await;
    assert_eq!(record["data"]["args"], expected, "{record}");
    let (status, answer) = server.invoke("lenient", json!({"query": "cats", "limit": "many"})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_arguments"), "{answer}");
}

#[tokio::test]
async fn outcomes_of_functions() {
    let server = Server::start().await;
    for function in ["double", "fail", "panic", "panic_blocking"] {
        server.create(function_tool(function, function)).await;
    }
    let (status, answer) = server.invoke("double", json!({"n": 21})).await;
    assert_eq!((status, &answer["ok"], &answer["value"]), (200, &json!(true), &json!(42)));
    assert!(answer["call_id"].is_string() && answer["duration_ms"].as_f64().unwrap() >= 1.0, "{answer}");

    let (status, answer) = server.invoke("fail", json!({})).await;
    assert_eq!(
        (status, &answer["ok"]),
        (200, &json!(false)),
        "a tool that fails is not a fault of the request"
    );
    assert_eq!(
        answer["error"],
        json!({"code": "execution_failed", "message": "operation failed: connection refused", "retryable": false,
               "model_text": "Tool call failed: operation failed: connection refused"})
    );
    server.create(function_tool("panic_early", "panic_early")).await;
    for name in ["panic", "panic_blocking", "panic_early"] {
        let (status, answer) = server.invoke(name, json!({})).await;
        assert_eq!((status, code(&answer)), (200, "panicked"), "{answer}");
        assert_eq!(answer["error"]["model_text"], "Tool call failed: the tool failed unexpectedly");
    }
    assert_eq!(server.get("/healthz").await.0, 200);
}

#[tokio::test]
async fn arguments_are_validated_before_the_call() {
    let server = Server::start().await;
    let mut tool = function_tool("strict", "echo");
    tool["input_schema"] = json!({
        "type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 7}},
        "required": ["city"], "additionalProperties": false,
    });
    server.create(tool).await;
    let (status, answer) = server.invoke("strict", json!({"days": 9})).await;
    assert_eq!((status, code(&answer), &answer["ok"]), (400, "invalid_arguments", &json!(false)));
    assert_eq!(answer["error"]["details"]["violations"].as_array().unwrap().len(), 2, "{answer}");
    let (status, answer) = server.post("/api/tools/strict/invoke", json!({"city": "Oslo"})).await;
    assert_eq!(status, 400);
    assert!(answer["error"]["message"].as_str().unwrap().contains("args"), "{answer}");
    assert_eq!(server.invoke("strict", json!({"city": "Oslo"})).await.0, 200);
    let (_, answer) = server.get("/api/calls?tool=strict&status=error").await;
    assert_eq!(answer["data"]["total"], 1, "a refused call leaves a record: {answer}");
}

#[tokio::test]
async fn output_is_validated_and_timeouts_apply() {
    let server = Server::start().await;
    let mut tool = function_tool("shaped", "echo");
    tool["output_schema"] = json!({"type": "object", "required": ["answer"]});
    server.create(tool).await;
    let (status, answer) = server.invoke("shaped", json!({})).await;
    assert_eq!((status, code(&answer)), (200, "invalid_output"));
    assert_eq!(server.invoke("shaped", json!({"answer": 1})).await.1["ok"], true);

    let mut slow = function_tool("slow", "sleep");
    slow["execution"] = json!({"timeout_ms": 50});
    server.create(slow).await;
    let (status, answer) = server.invoke("slow", json!({})).await;
    assert_eq!((status, code(&answer)), (200, "timeout"), "{answer}");
}

#[tokio::test]
async fn every_call_is_recorded_newest_first() {
    let server = Server::start().await;
    let mut ids = Vec::new();
    for index in 0..5 {
        let (_, answer) = server.invoke("hello", json!({"index": index})).await;
        ids.push(answer["call_id"].clone());
    }
    ids.reverse();
    let (_, answer) = server.get("/api/calls?page_size=3").await;
    let shown: Vec<_> = answer["data"]["calls"].as_array().unwrap().iter().map(|c| c["id"].clone()).collect();
    assert_eq!((shown.as_slice(), &answer["data"]["total"]), (&ids[..3], &json!(5)));
    let token = answer["data"]["next_page_token"].as_str().unwrap();
    let (_, answer) = server.get(&format!("/api/calls?page_size=3&page_token={token}")).await;
    let shown: Vec<_> = answer["data"]["calls"].as_array().unwrap().iter().map(|c| c["id"].clone()).collect();
    assert_eq!(shown, ids[3..]);
    let (_, answer) = server.get(&format!("/api/calls/{}", ids[0].as_str().unwrap())).await;
    let call = &answer["data"];
    assert_eq!(
        (&call["tool"], &call["status"], &call["args"], &call["surface"], &call["caller"]),
        (
            &json!("builtin:hello@1.0.0"),
            &json!("success"),
            &json!({"index": 4}),
            &json!("rest"),
            &json!("local")
        )
    );
    assert_eq!(server.get("/api/calls/018faf50-b7b6-7a01-9a05-a22a6e0af101").await.0, 404);
    assert_eq!(server.get("/api/calls/x").await.0, 404);
}

#[tokio::test]
async fn a_background_call_streams_events_and_is_cancelled() {
    let server = Server::start().await;
    server.create(function_tool("slow", "sleep")).await;
    let (status, answer) =
        server.post("/api/tools/slow/invoke?async=true", json!({"args": {"ms": 60000}})).await;
    assert_eq!(status, 202, "{answer}");
    let path = format!("/api/calls/{}", answer["call_id"].as_str().unwrap());
    poll(async || (server.get(&path).await.1["data"]["status"] == "running").then_some(())).await;
    let (_, listed) = server.get("/api/calls?status=running").await;
    assert_eq!(listed["data"]["total"], 1, "{listed}");
    assert_eq!(listed["data"]["calls"][0]["status"], "running", "{listed}");
    let mut events = server.request(Method::GET, &format!("{path}/events")).send().await.unwrap();
    let first = events.chunk().await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&first).contains(r#""status":"running""#), "{first:?}");
    assert_eq!(server.post(&format!("{path}/cancel"), json!({})).await.0, 200);
    let text = events.text().await.unwrap();
    assert!(text.contains(r#""status":"cancelled""#), "{text}");
    let (_, answer) = server.get(&path).await;
    assert_eq!(
        (&answer["data"]["status"], &answer["data"]["error"]["code"]),
        (&json!("cancelled"), &json!("cancelled"))
    );
    let (status, answer) = server.post(&format!("{path}/cancel"), json!({})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));

    let (status, _) =
        server.post("/api/tools/slow/invoke?async=true", json!({"args": {"ms": "x"}, "y": 1})).await;
    assert_eq!(status, 400, "an invalid call is rejected at once");
    let (_, answer) = server.post("/api/tools/slow/invoke?async=true", json!({"args": {"ms": 1}})).await;
    let path = format!("/api/calls/{}/events", answer["call_id"].as_str().unwrap());
    let text = server.request(Method::GET, &path).send().await.unwrap().text().await.unwrap();
    assert!(text.contains(r#""value":"slept""#), "{text}");
}

#[tokio::test]
async fn an_idempotency_key_never_runs_twice() {
    let server = Server::start().await;
    let call = |args: Value| {
        let request = server.request(Method::POST, "/api/tools/hello/invoke").header("idempotency-key", "k1");
        send(request.body(json!({"args": args}).to_string()))
    };
    let (status, first) = call(json!({"n": 1})).await;
    assert_eq!(status, 200);
    let (status, again) = call(json!({"n": 1})).await;
    assert_eq!((status, &again["call_id"], &again["value"]), (200, &first["call_id"], &json!({"n": 1})));
    let (status, answer) = call(json!({"n": 2})).await;
    assert_eq!((status, code(&answer)), (409, "idempotency_conflict"));
    assert_eq!(server.get("/api/calls").await.1["data"]["total"], 1);

    let server = server.restart().await;
    let request = server.request(Method::POST, "/api/tools/hello/invoke").header("idempotency-key", "k1");
    let (_, again) = send(request.body(json!({"args": {"n": 1}}).to_string())).await;
    assert_eq!(again["call_id"], first["call_id"], "also after a restart");
}

#[tokio::test]
async fn a_key_is_for_the_same_call_in_the_queue_and_outside_of_it() {
    let server = Server::start().await;
    let mut tool = function_tool("defaulted", "echo");
    tool["input_schema"] =
        json!({"type": "object", "properties": {"path": {"type": "string", "default": "/etc"}}});
    server.create(tool).await;
    for (first, second) in [("?async=true", ""), ("", "?async=true")] {
        let call = async |query: &str| {
            let path = format!("/api/tools/defaulted/invoke{query}");
            let request = server.request(Method::POST, &path).header("idempotency-key", format!("k{first}"));
            send(request.body(json!({"args": {}}).to_string())).await
        };
        let (_, started) = call(first).await;
        crate::waiting::finished(&server, &started["call_id"]).await;
        let (status, again) = call(second).await;
        assert_eq!((status, &again["call_id"]), (200, &started["call_id"]), "{again}");
        assert_eq!(again["value"], json!({"path": "/etc"}));
    }
}

#[tokio::test]
async fn a_call_whose_client_disconnects_is_recorded_as_cancelled() {
    let server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    let call = tokio::spawn(server.request(Method::POST, "/api/tools/slow/invoke").send());
    server.gate.entered(1).await;
    call.abort();
    let status = poll(async || {
        let (_, answer) = server.get("/api/calls?tool=slow").await;
        (answer["data"]["total"] == 1).then(|| answer["data"]["calls"][0]["status"].clone())
    })
    .await;
    assert_eq!(status, "cancelled");
}

#[tokio::test]
async fn a_stop_lets_running_calls_finish() {
    let mut server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    let call = tokio::spawn(send(server.request(Method::POST, "/api/tools/slow/invoke")));
    server.gate.entered(1).await;
    let (gate, addr) = (server.gate.clone(), server.addr);
    let finish = async {
        // The shutdown has begun when no more connections are accepted.
        poll(async || tokio::net::TcpStream::connect(addr).await.err()).await;
        gate.open();
    };
    tokio::join!(server.halt(), finish);
    let (status, answer) = call.await.unwrap();
    assert_eq!((status, &answer["value"]), (200, &json!("passed")));
}

#[tokio::test]
async fn the_limit_of_concurrent_calls_is_enforced() {
    let server = Server::start_with(|settings| settings.server.max_running_calls = 2).await;
    server.create(function_tool("slow", "gate")).await;
    let calls: Vec<_> =
        (0..2).map(|_| tokio::spawn(send(server.request(Method::POST, "/api/tools/slow/invoke")))).collect();
    server.gate.entered(2).await;
    for _ in 0..2 {
        let (status, answer) = server.invoke("slow", json!({})).await;
        assert_eq!((status, code(&answer)), (503, "overloaded"), "{answer}");
    }
    server.gate.open();
    for call in calls {
        assert_eq!(call.await.unwrap().0, 200);
    }
}

#[tokio::test]
async fn a_call_with_an_idempotency_key_continues_without_its_client() {
    let server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    let call =
        || send(server.request(Method::POST, "/api/tools/slow/invoke").header("idempotency-key", "k1"));
    let first = tokio::spawn(call());
    server.gate.entered(1).await;
    first.abort();
    // The second request waits for the first call.
    let again: Vec<_> = (0..3).map(|_| tokio::spawn(call())).collect();
    server.gate.open();
    for answer in again {
        assert_eq!(answer.await.unwrap().1["value"], "passed");
    }
    assert_eq!(server.get("/api/calls?tool=slow").await.1["data"]["total"], 1, "it ran once");
}

#[tokio::test]
async fn calls_are_cancelled_and_recorded_after_the_grace_period() {
    let mut server =
        Server::start_with(|settings| settings.server.shutdown_grace = Duration::from_millis(100)).await;
    server.create(function_tool("slow", "gate")).await;
    let mut pure = function_tool("pure", "gate");
    pure["execution"] = json!({"is_pure": true});
    server.create(pure).await;
    let calls: Vec<_> = ["slow", "pure"]
        .map(|tool| server.request(Method::POST, &format!("/api/tools/{tool}/invoke")))
        .map(|request| tokio::spawn(request.send()))
        .into();
    server.gate.entered(2).await;
    server.halt().await;
    for call in calls {
        let _ = call.await.unwrap();
    }
    let server = server.restart().await;
    for (tool, retryable) in [("slow", false), ("pure", true)] {
        let (_, answer) = server.get(&format!("/api/calls?tool={tool}")).await;
        let call = &answer["data"]["calls"][0];
        assert_eq!(
            (&answer["data"]["total"], &call["status"], &call["error"]["code"]),
            (&json!(1), &json!("cancelled"), &json!("cancelled")),
            "{answer}"
        );
        assert_eq!(call["error"]["message"], "the server shut down before the call ended");
        assert_eq!(call["error"]["retryable"], retryable);
        assert_eq!(
            (&call["error"]["model_text"], &call["error"]["for_model"]),
            (&json!("Tool call failed: the server shut down before the call ended"), &json!(null))
        );
    }
}

#[tokio::test]
async fn max_parallel_limits_concurrent_calls_of_a_tool() {
    let server = Server::start().await;
    let mut tool = function_tool("single", "counting");
    tool["execution"] = json!({"limits": {"max_parallel": 1}, "timeout_ms": 20000});
    server.create(tool).await;
    server.create(function_tool("many", "gate")).await;
    let calls = futures_util::future::join_all((0..6).map(|_| server.invoke("single", json!({})))).await;
    assert!(calls.iter().all(|(_, answer)| answer["value"] == 1), "{calls:?}");
    let calls = futures_util::future::join_all((0..6).map(|_| server.invoke("many", json!({}))));
    let open = async {
        server.gate.entered(6).await;
        server.gate.open();
    };
    tokio::join!(calls, open);
}

#[tokio::test]
async fn only_errors_marked_retryable_are_retried() {
    let server = Server::start().await;
    for (name, function) in [("marked", "flaky_marked"), ("unmarked", "flaky_unmarked")] {
        server.create(function_tool(name, function)).await;
    }
    assert_eq!(server.invoke("marked", json!({})).await.1["value"], 2, "the second attempt succeeds");
    let (_, answer) = server.invoke("unmarked", json!({})).await;
    assert_eq!(code(&answer), "network", "not repeated: it may have had an effect");
}

#[tokio::test]
async fn the_rate_of_a_definition_is_a_429_with_retry_after() {
    let server = Server::start().await;
    let mut tool = function_tool("rare", "echo");
    tool["execution"] = json!({"rate_limit": {"calls": 1, "per": "1h"}});
    let created = server.create(tool).await;
    assert!(!created.to_string().contains("not_enforced"), "{created}");
    assert_eq!(server.invoke("rare", json!({"text": "a"})).await.0, 200);
    let request = server.request(Method::POST, "/api/tools/rare/invoke");
    let response = request.body(json!({"args": {"text": "b"}}).to_string()).send().await.unwrap();
    let wait: u64 = response.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert_eq!((response.status().as_u16(), (1..=3600).contains(&wait)), (429, true), "{wait}");
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((code(&answer), &answer["ok"]), ("rate_limited", &json!(false)), "{answer}");
    assert_eq!(answer["error"]["details"]["per"], "1h");

    for (limit, field) in [
        (json!({"calls": 0, "per": "1m"}), "execution.rate_limit.calls"),
        (json!({"calls": 1, "per": "often"}), "execution.rate_limit.per"),
    ] {
        let mut tool = function_tool("wrong", "echo");
        tool["execution"] = json!({"rate_limit": limit});
        let (status, answer) = server.post("/api/tools", tool).await;
        assert_eq!(
            (status, &answer["error"]["details"]["problems"][0]["field"]),
            (400, &json!(field)),
            "{answer}"
        );
    }
}

#[tokio::test]
async fn every_rejection_has_a_call_id_and_a_text_for_the_model() {
    let server = Server::start().await;
    let mut tool = function_tool("greet", "echo");
    tool["input_schema"] =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    tool["maxCallsPerMinute"] = json!(1);
    server.create(tool).await;
    let mut denied = function_tool("denied", "echo");
    denied["policy"] = json!("deny");
    server.create(denied).await;
    assert_eq!(server.invoke("greet", json!({"name": "Ada"})).await.0, 200);
    for (path, body, expected) in [
        ("greet/invoke", json!({"args": {}}), (400, "invalid_arguments", true)),
        ("greet/invoke", json!({"args": {"name": "Ada"}}), (429, "rate_limited", true)),
        ("denied/invoke", json!({"args": {}}), (403, "policy_denied", true)),
        // No tool and no call: nothing is recorded.
        ("gret/invoke", json!({"args": {}}), (404, "not_found", false)),
        ("a b/invoke", json!({"args": {}}), (400, "invalid_request", false)),
        ("greet/invoke", json!({"argz": {}}), (400, "invalid_request", false)),
        ("greet/invoke?mode=x", json!({"args": {}}), (400, "invalid_request", false)),
    ] {
        let (status, answer) = server.post(&format!("/api/tools/{path}"), body).await;
        let id = answer["call_id"].as_str();
        assert_eq!((status, code(&answer), id.is_some()), expected, "{path}: {answer}");
        assert!(answer.get("call_id").is_some() && answer["ok"] == json!(false), "{path}: {answer}");
        let text = answer["error"]["model_text"].as_str().unwrap();
        assert!(text.starts_with("Tool call failed: "), "{path}: {answer}");
        if let Some(id) = id {
            let (status, record) = server.get(&format!("/api/calls/{id}")).await;
            assert_eq!((status, code(&record["data"])), (200, expected.1), "{record}");
        }
    }
}

#[tokio::test]
async fn calls_are_filtered() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    server.create(function_tool("broken", "fail")).await;
    let (_, token) = server.post("/api/tokens", json!({"name": "ci", "role": "caller"})).await;
    let token = token["data"]["token"].as_str().unwrap();
    let body = json!({"args": {"city": "Bern"}, "chat_id": "chat-1"}).to_string();
    let request = server.bare(Method::POST, "/api/tools/worker/invoke").bearer_auth(token).body(body);
    assert_eq!(send(request).await.0, 200);
    for _ in 0..3 {
        server.post("/api/tools/broken/invoke", json!({"chat_id": "chat-2"})).await;
    }
    let list = async |query: &str| {
        let (status, answer) = server.get(&format!("/api/calls?{query}")).await;
        assert_eq!(status, 200, "{query}: {answer}");
        let tools = answer["data"]["calls"].as_array().unwrap().iter().map(|call| call["tool"].clone());
        let short = |tool: Value| tool.as_str().unwrap().trim_start_matches("user-created:").to_owned();
        (tools.map(short).collect::<Vec<_>>(), answer["data"]["total"].as_u64().unwrap())
    };
    let (worker, broken) = ("worker@1.0.0".to_owned(), "broken@1.0.0".to_owned());
    for query in
        ["caller=ci", "chat_id=chat-1", "chatId=chat-1", "q=bern", "status=success", "since=1h&caller=ci"]
    {
        assert_eq!(list(query).await, (vec![worker.clone()], 1), "{query}");
    }
    for (query, total_of_second) in [
        ("error_code=execution_failed&page_size=2", 3),
        ("chat_id=chat-2&limit=2", 3),
        // A search counts what it finds from the beginning of its page on.
        ("q=REFUSED&page_size=2", 1),
    ] {
        assert_eq!(list(query).await, (vec![broken.clone(); 2], 3), "{query}");
        let (_, first) = server.get(&format!("/api/calls?{query}")).await;
        let next = first["data"]["next_page_token"].as_str().unwrap();
        let second = list(&format!("{query}&page_token={next}")).await;
        assert_eq!(second, (vec![broken.clone()], total_of_second), "{query}");
    }
    for query in ["caller=nobody", "until=1h", "since=2100-01-01T00:00:00Z", "error_code=timeout"] {
        assert_eq!(list(query).await, (vec![], 0), "{query}");
    }
    let long = format!("q={}", "x".repeat(201));
    for (query, expected) in [
        (
            "error_code=slow",
            "invalid `error_code`: `slow`; expected one of the error codes, for example `timeout`",
        ),
        (
            "until=soon",
            "invalid `until`: `soon`; expected a time such as `2026-01-31T12:00:00Z`, or a period such as `24h` or `7d`",
        ),
        (&long, "`q` exceeds the limit of 200 characters"),
    ] {
        let (status, answer) = server.get(&format!("/api/calls?{query}")).await;
        assert_eq!((status, answer["error"]["message"].as_str()), (400, Some(expected)), "{query}");
    }
    let (status, answer) = server.post("/api/tools/worker/invoke", json!({"chat_id": "x".repeat(256)})).await;
    assert_eq!((status, &answer["ok"]), (400, &json!(false)), "{answer}");
}
