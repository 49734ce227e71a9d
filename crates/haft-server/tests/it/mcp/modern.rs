//! The stateless version of 2026-07-28.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{BOTH, MODERN, modern, modern_message, names, read_until, request, send};
use crate::harness::{Server, function_tool, poll};

#[tokio::test]
async fn tools_are_listed_as_they_are() {
    let server = Server::start().await;
    server
        .create(json!({
            "name": "sum", "display_name": "Sum up", "description": "Adds two numbers",
            "implementation": {"type": "function", "function": "echo"},
            "execution": {"is_pure": true},
            "input_schema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            "output_schema": {"type": "object", "properties": {"a": {"type": "number"}}},
        }))
        .await;
    let answer = send(modern(&server, "/mcp", &server.token, "tools/list", json!({}))).await;
    assert_eq!((answer.status, answer.kind.as_str()), (200, "application/json"));
    let list = answer.last();
    let tools = list["result"]["tools"].as_array().unwrap();
    let sum = tools.iter().find(|tool| tool["name"] == "sum").unwrap();
    assert_eq!(
        *sum,
        json!({
            "name": "sum", "title": "Sum up", "description": "Adds two numbers",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]},
            "outputSchema": {"type": "object", "properties": {"a": {"type": "number"}}},
            "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
        })
    );
    let params = json!({"name": "sum", "arguments": {"a": 2}});
    let called = send(modern(&server, "/mcp", &server.token, "tools/call", params)).await;
    assert_eq!(called.kind, "application/json");
    assert_eq!(called.last()["result"]["structuredContent"], json!({"a": 2}));
    let record = &server.get("/api/calls").await.1["data"]["calls"][0];
    assert_eq!((&record["surface"], &record["status"]), (&json!("mcp"), &json!("success")), "{record}");
    assert!(record["request_id"].is_string());
}

#[tokio::test]
async fn an_invalid_call_is_reported() {
    let server = Server::start().await;
    for arguments in [json!([1]), json!("x")] {
        let params = json!({"name": "echo", "arguments": arguments});
        let answer = send(modern(&server, "/mcp", &server.token, "tools/call", params)).await;
        let error = &answer.last()["error"];
        let message = error["message"].as_str().unwrap_or_default();
        assert!(error["code"] == -32602 && message.contains("must be an object"), "{arguments}: {error}");
        assert_ne!(answer.status, 404, "{arguments}");
    }
}

#[tokio::test]
async fn headers_must_match_the_body() {
    let server = Server::start().await;
    server
        .create(json!({
            "name": "regional", "description": "Has an argument that is also a header",
            "implementation": {"type": "function", "function": "echo"},
            "input_schema": {"type": "object",
                "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
        }))
        .await;
    let message = modern_message("tools/call", json!({"name": "regional", "arguments": {"region": "eu"}}));
    let check = async |headers: &[(&str, &str)], expected: (u16, Option<i64>)| {
        let mut request = request(&server, "/mcp", &server.token, &message);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = send(request).await;
        let code = answer.messages().first().and_then(|message| message["error"]["code"].as_i64());
        assert_eq!((answer.status, code), expected, "{headers:?}: {answer:?}");
    };
    let version = ("mcp-protocol-version", MODERN);
    let method = ("mcp-method", "tools/call");
    let name = ("mcp-name", "regional");
    let param = ("mcp-param-region", "eu");
    let mismatch = (400, Some(-32020));
    check(&[version, method, name, param], (200, None)).await;
    check(&[version, method, ("mcp-name", "hello"), param], mismatch).await;
    check(&[version, ("mcp-method", "tools/list"), name, param], mismatch).await;
    check(&[version, method, param], mismatch).await;
    check(&[version, name, param], mismatch).await;
    check(&[version, method, name, ("mcp-param-region", "us")], mismatch).await;
    check(&[version, method, name], mismatch).await;
    check(&[("mcp-protocol-version", "2025-11-25"), method, name, param], mismatch).await;
    check(&[("mcp-protocol-version", "2031-01-01"), method, name, param], mismatch).await;
}

#[tokio::test]
async fn invalid_messages_are_rejected() {
    let server = Server::start_with(|settings| settings.server.max_body_bytes = 10_000).await;
    let token = &server.token;
    let list = || modern(&server, "/mcp", token, "tools/list", json!({}));
    let call = |params: Value| modern(&server, "/mcp", token, "tools/call", params);
    let level = json!({"level": "info"});
    let hello = json!({"protocolVersion": MODERN, "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    for (what, request, status, code) in [
        ("too large", list().body(format!("\"{}\"", "x".repeat(20_000))), 413, Some(-32600)),
        ("no JSON", list().body("{"), 400, Some(-32700)),
        ("not JSON-RPC", list().body("{\"x\":1}"), 400, Some(-32700)),
        ("another type", server.request(Method::POST, "/mcp").header("accept", BOTH).body("{}"), 415, None),
        ("unknown method", modern(&server, "/mcp", token, "tools/burn", json!({})), 404, Some(-32601)),
        ("removed", modern(&server, "/mcp", token, "logging/setLevel", json!({})), 404, Some(-32601)),
        ("with params", modern(&server, "/mcp", token, "logging/setLevel", level), 404, Some(-32601)),
        ("initialize", modern(&server, "/mcp", token, "initialize", hello), 404, Some(-32601)),
        ("unknown tool", call(json!({"name": "nothing", "arguments": {}})), 200, Some(-32602)),
        ("odd name", call(json!({"name": "a/b c", "arguments": {}})), 200, Some(-32602)),
        ("cursor", modern(&server, "/mcp", token, "tools/list", json!({"cursor": "x"})), 200, Some(-32602)),
    ] {
        let answer = send(request).await;
        let found = answer.messages().first().and_then(|message| message["error"]["code"].as_i64());
        assert_eq!((answer.status, found), (status, code), "{what}: {answer:?}");
    }
}

#[tokio::test]
async fn invalid_arguments_are_reported_to_the_model() {
    let server = Server::start().await;
    let mut tool = function_tool("strict", "echo");
    tool["input_schema"] =
        json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    server.create(tool).await;
    let params = json!({"name": "strict", "arguments": {"n": "many"}});
    let answer = send(modern(&server, "/mcp", &server.token, "tools/call", params)).await.last();
    assert_eq!(answer["result"]["isError"], true);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("/n: ") && text.contains("integer"), "{text}");
}

#[tokio::test]
async fn a_disconnect_cancels_the_call() {
    let server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    let request =
        modern(&server, "/mcp", &server.token, "tools/call", json!({"name": "slow", "arguments": {}}));
    let call = tokio::spawn(request.send());
    server.gate.entered(1).await;
    call.abort();
    poll(async || {
        let (_, calls) = server.get("/api/calls").await;
        (calls["data"]["calls"][0]["status"] == "cancelled").then_some(())
    })
    .await;
}

#[tokio::test]
async fn subscribers_are_notified_of_new_tools_until_shutdown() {
    let mut server = Server::start().await;
    let params = json!({"notifications": {"toolsListChanged": true}});
    let request = modern(&server, "/mcp", &server.token, "subscriptions/listen", params);
    let mut response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    assert!(!response.headers().contains_key("content-encoding"));
    read_until(&mut response, "notifications/subscriptions/acknowledged").await;
    server.create(function_tool("fresh", "echo")).await;
    read_until(&mut response, "notifications/tools/list_changed").await;
    server.halt().await;
    // The end is a proper one: the answer to the request, and the end of the stream.
    let rest = response.text().await.unwrap();
    assert!(rest.contains("\"result\""), "{rest}");
}

#[tokio::test]
async fn many_tools_are_searched_instead_of_listed() {
    let server = Server::start_with(|settings| settings.mcp.compact_above = 3).await;
    for name in ["one", "two", "three"] {
        server.create(function_tool(name, "echo")).await;
    }
    let list = async || send(modern(&server, "/mcp", &server.token, "tools/list", json!({}))).await.last();
    // Without anything that finds them there is no other way than to list them.
    let all = list().await;
    if !names(&all).contains(&"search_tools") && names(&all).contains(&"one") {
        server.create(function_tool("search_tools", "echo")).await;
    }
    assert_eq!(names(&list().await), ["call_tool", "search_tools"]);
    let call =
        async |params: Value| send(modern(&server, "/mcp", &server.token, "tools/call", params)).await.last();
    let through =
        call(json!({"name": "call_tool", "arguments": {"name": "two", "arguments": {"x": 1}}})).await;
    assert_eq!(through["result"]["structuredContent"], json!({"x": 1}));
    for arguments in [json!({}), json!({"name": 7}), json!({"name": "two", "arguments": []})] {
        let refused = call(json!({"name": "call_tool", "arguments": arguments})).await;
        assert_eq!(refused["result"]["isError"], true, "a model reads it: {refused}");
    }
    // A tool that calls itself so does not get the calls of others.
    server.create(function_tool("call_tool", "echo")).await;
    let through =
        call(json!({"name": "call_tool", "arguments": {"name": "two", "arguments": {"x": 2}}})).await;
    assert_eq!(through["result"]["structuredContent"], json!({"x": 2}));
    assert_eq!(names(&list().await), ["call_tool", "search_tools"]);
}

#[tokio::test]
async fn an_alias_of_another_tool_is_not_reused() {
    let server = Server::start().await;
    server.create(function_tool("天気", "echo")).await;
    let list = async || send(modern(&server, "/mcp", &server.token, "tools/list", json!({}))).await.last();
    let reported = names(&list().await).into_iter().find(|name| name.starts_with("__")).unwrap().to_owned();
    let mut other = function_tool(&reported, "echo");
    other["input_schema"] = json!({"type": "object", "required": ["secret"], "properties": {"secret": {}}});
    server.create(other).await;
    let all = list().await;
    let all = names(&all);
    assert_eq!(all.iter().filter(|name| **name == reported).count(), 1, "{all:?}");
    let params = json!({"name": reported, "arguments": {"x": 1}});
    let called = send(modern(&server, "/mcp", &server.token, "tools/call", params)).await.last();
    assert_eq!(called["result"]["structuredContent"], json!({"x": 1}), "{called}");
    // The other one is there under a name of its own.
    let name = all.iter().find(|name| name.starts_with(&reported) && **name != reported).unwrap();
    let params = json!({"name": name, "arguments": {"secret": 2}});
    let called = send(modern(&server, "/mcp", &server.token, "tools/call", params)).await.last();
    assert_eq!(called["result"]["structuredContent"], json!({"secret": 2}), "{called}");
}

#[tokio::test]
async fn large_definitions_are_searched_instead_of_listed() {
    let server = Server::start_whole(|settings| settings.mcp.compact_above_tokens = 20_000).await;
    let list = async || send(modern(&server, "/mcp", &server.token, "tools/list", json!({}))).await.last();
    server.create(function_tool("small", "echo")).await;
    assert!(names(&list().await).contains(&"small"));
    let mut large = function_tool("large", "echo");
    large["description"] = "word ".repeat(1500).into();
    for at in 0..12 {
        large["name"] = format!("large-{at}").into();
        server.create(large.clone()).await;
    }
    assert_eq!(names(&list().await), ["call_tool", "describe_tool", "search_tools"]);
}

#[tokio::test]
async fn search_in_a_bundle_view_is_limited_to_the_bundle() {
    let server = Server::start_whole(|settings| settings.mcp.compact_above = 2).await;
    for name in ["red-lamp", "green-lamp", "blue-lamp"] {
        server.post("/api/tools?bundle=lamps", function_tool(name, "echo")).await;
    }
    server.create(function_tool("other-lamp", "echo")).await;
    let ask = async |method: &str, params: Value| {
        send(modern(&server, "/mcp/bundles/lamps", &server.token, method, params)).await.last()
    };
    assert_eq!(names(&ask("tools/list", json!({})).await), ["call_tool", "describe_tool", "search_tools"]);
    let call = async |name: &str, arguments: Value| {
        ask("tools/call", json!({"name": name, "arguments": arguments})).await
    };
    // A client cannot leave the view of its bundle.
    for arguments in [json!({"query": "lamp"}), json!({"query": "lamp", "bundle": "user-created"})] {
        let found = call("search_tools", arguments).await;
        let text = found["result"]["content"][0]["text"].as_str().unwrap();
        let found: Value = serde_json::from_str(text).unwrap();
        let mut found: Vec<_> = found.as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
        found.sort_by_key(Value::to_string);
        assert_eq!(found, ["blue-lamp", "green-lamp", "red-lamp"]);
    }
    assert_eq!(
        names(&ask("tools/list", json!({})).await),
        ["call_tool", "describe_tool", "search_tools", "blue-lamp", "green-lamp", "red-lamp"]
    );
    let described = call("describe_tool", json!({"tool": "red-lamp", "bundle": "user-created"})).await;
    assert_eq!(described["result"]["structuredContent"]["tool"], "lamps:red-lamp@1.0.0", "{described}");
    let refused = call("describe_tool", json!({"tool": "other-lamp"})).await;
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    let through = call("call_tool", json!({"name": "red-lamp", "arguments": {"on": true}})).await;
    assert_eq!(through["result"]["structuredContent"], json!({"on": true}));
    for name in ["other-lamp", "user-created:other-lamp", "builtin:http_request", "create_tool"] {
        let refused = call("call_tool", json!({"name": name, "arguments": {}})).await;
        assert_eq!(refused["result"]["isError"], true, "{name} {refused}");
    }
}

/// What is answered the short way has to be what rmcp would have answered: a key of `_meta` that nobody reads sends the
/// same call the long way.
#[tokio::test]
async fn plain_and_encoded_paths_give_the_same_response() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let mut checked = function_tool("checked", "echo");
    checked["input_schema"] =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}});
    server.create(checked).await;
    for params in [
        json!({"name": "echo", "arguments": {"x": [1, "ä", null]}}),
        json!({"name": "echo"}),
        json!({"name": "echo", "arguments": null}),
        json!({"name": "echo", "arguments": [1]}),
        json!({"name": "echo", "arguments": {}, "extra": 1}),
        json!({"name": "checked", "arguments": {"a": "x"}}),
        json!({"name": "user-created:echo", "arguments": {"a": 1}}),
        json!({"name": "absent", "arguments": {}}),
        json!({"name": 7, "arguments": {}}),
    ] {
        let mut long = params.clone();
        long["_meta"] = json!({"example.com/unread": 1});
        let mut answers = Vec::new();
        for params in [params.clone(), long] {
            let answer = send(modern(&server, "/mcp", &server.token, "tools/call", params)).await;
            answers.push((answer.status, answer.kind, answer.text));
        }
        assert_eq!(answers[0], answers[1], "{params}");
    }
    let other = modern_message("tools/call", json!({"name": "checked", "arguments": {"a": 1}}));
    let disagreeing = request(&server, "/mcp", &server.token, &other)
        .header("mcp-protocol-version", MODERN)
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    let refused = send(disagreeing).await;
    assert_eq!(refused.status, 400, "header and body disagree: {}", refused.text);
}

#[tokio::test]
async fn log_messages_are_sent_on_request_and_do_not_repeat_the_result() {
    let server = Server::start().await;
    server
        .create(json!({
            "name": "talker", "description": "Writes to both outputs", "runtime": "bash",
            "body": "echo working >&2; echo result", "parameters": {"type": "object", "properties": {}},
            "sandbox": true,
        }))
        .await;
    let call = async |meta: Value| {
        let params = json!({"name": "talker", "arguments": {}, "_meta": meta});
        send(modern(&server, "/mcp", &server.token, "tools/call", params)).await.messages()
    };
    assert_eq!(call(json!({})).await.len(), 1, "nobody requested log messages");
    let messages = call(json!({"io.modelcontextprotocol/logLevel": "info"})).await;
    let lines: Vec<_> = messages.iter().filter_map(|message| message.pointer("/params/data")).collect();
    assert_eq!(lines, ["working"]);
    assert_eq!(messages.last().unwrap()["result"]["content"][0]["text"], "result", "{messages:?}");
}
