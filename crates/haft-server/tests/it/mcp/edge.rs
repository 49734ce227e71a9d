//! What the MCP server checks before rmcp reads a message: batches, headers and invalid messages.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::client::{MODERN, Session, modern_message, request, send};
use crate::harness::{Server, function_tool};

fn call(id: u32, name: &str, arguments: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

#[tokio::test]
async fn sessions_of_older_versions_take_batches() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    for version in ["2024-11-05", "2025-03-26"] {
        let session = Session::open(&server, "/mcp", &server.token, version).await;
        let batch = json!([
            call(1, "worker", &json!({"x": 1})),
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"cursor": 5}},
            {"odd": true},
            call(3, "worker", &json!({"x": 3})),
        ]);
        let answer = send(session.request(&batch)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let mut reported: Vec<Value> = answer
            .messages()
            .iter()
            .map(|message| {
                json!([message["id"], message["result"]["structuredContent"], message["error"]["code"]])
            })
            .collect();
        reported.sort_by_key(ToString::to_string);
        let expected =
            json!([[1, {"x": 1}, null], [2, null, -32602], [3, {"x": 3}, null], [null, null, -32700]]);
        assert_eq!(Value::Array(reported), expected, "{version}: {}", answer.text);
        let quiet =
            json!([{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 9}}]);
        assert_eq!(send(session.request(&quiet)).await.status, 202, "{version}");
        for (batch, why) in [
            (json!([]), "empty batch"),
            (json!(vec![1; 101]), "batch limit (100 messages) exceeded"),
            (json!([{"jsonrpc": "2.0", "id": 1, "method": "initialize"}]), "`initialize` cannot be part"),
        ] {
            let answer = send(session.request(&batch)).await;
            let error = answer.last();
            assert_eq!(
                (answer.status, &error["error"]["code"], &error["id"]),
                (400, &json!(-32600), &Value::Null)
            );
            assert!(error["error"]["message"].as_str().unwrap().starts_with(why), "{error}");
        }
    }
}

#[tokio::test]
async fn later_versions_reject_batches() {
    let server = Server::start().await;
    let batch = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    for version in ["2025-06-18", "2025-11-25"] {
        let session = Session::open(&server, "/mcp", &server.token, version).await;
        let answer = send(session.request(&batch)).await;
        assert_eq!((answer.status, &answer.last()["error"]["code"]), (400, &json!(-32600)), "{answer:?}");
        assert!(answer.text.contains(&format!("this session uses {version}")), "{answer:?}");
    }
    let answer = send(request(&server, "/mcp", &server.token, &batch)).await;
    assert_eq!(answer.status, 400, "{answer:?}");
    assert!(answer.text.contains("no session is open"), "{answer:?}");
}

#[tokio::test]
async fn headers_agree_with_the_message_in_sessions_too() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    for (headers, expected) in [
        (vec![("mcp-method", "tools/call"), ("mcp-name", "worker")], None),
        (vec![("mcp-name", "other")], Some("`params.name` is `worker`")),
        (vec![("mcp-method", "tools/list")], Some("`method` is `tools/call`")),
    ] {
        let mut sent = session.request(&call(7, "worker", &json!({})));
        for (name, value) in &headers {
            sent = sent.header(*name, *value);
        }
        let answer = send(sent).await;
        let error = &answer.last()["error"];
        assert_eq!(error["code"], expected.map_or(Value::Null, |_| json!(-32020)), "{answer:?}");
        assert_eq!(answer.status, if expected.is_some() { 400 } else { 200 }, "{answer:?}");
        assert!(answer.text.contains(expected.unwrap_or("result")), "{answer:?}");
    }
}

#[tokio::test]
async fn invalid_query_parameters_are_reported() {
    let server = Server::start().await;
    for version in ["2025-03-26", "2025-11-25"] {
        let session = Session::open(&server, "/mcp", &server.token, version).await;
        for (method, params, says) in [
            ("tools/list", json!({"cursor": 5}), "`params.cursor` must be a string"),
            ("tools/list", json!({"cursor": "no such page"}), "cursor"),
            (
                "logging/setLevel",
                json!({"level": "loud"}),
                "`params.level` must be one of `debug`, `info`, `notice`",
            ),
            ("logging/setLevel", json!({}), "`params.level` must be one of"),
            ("prompts/get", json!({}), "invalid `params`"),
            ("resources/list", json!({"cursor": 5}), "`params.cursor` must be a string"),
            ("prompts/list", json!({"cursor": "no such page"}), "cursor"),
            ("skills/list", json!({"cursor": "no such page"}), "cursor"),
            ("skills/get", json!({}), "`params.uri` must be a string"),
        ] {
            let error = session.ask(method, params).await.last()["error"].take();
            assert_eq!(error["code"], -32602, "{version} {method}: {error}");
            assert!(error["message"].as_str().unwrap().contains(says), "{version} {method}: {error}");
        }
        for method in ["no/such", "completion/complete"] {
            let error = session.ask(method, json!({})).await.last()["error"].take();
            assert_eq!(error["code"], -32601, "{version} {method}: {error}");
        }
    }
}

#[tokio::test]
async fn an_incomplete_body_is_a_client_error() {
    let server = Server::start().await;
    let address = server.addr.to_string();
    for head in ["Content-Length: 500", "Transfer-Encoding: chunked"] {
        let mut stream = tokio::net::TcpStream::connect(&address).await.unwrap();
        let text = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n{head}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\r\n5\r\n{{\"js",
            server.token
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        assert!(answer.contains("-32700") && answer.contains("incomplete request body"), "{answer}");
    }
}

#[tokio::test]
async fn invalid_lines_get_an_error_response() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let pipe =
        server.request(Method::GET, "/mcp").header("connection", "upgrade").header("upgrade", "mcp-lines");
    let mut pipe = BufReader::new(pipe.send().await.unwrap().upgrade().await.unwrap());
    let init = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let early = json!([{"jsonrpc": "2.0", "id": 5, "method": "ping"}]);
    let batch = json!([
        call(1, "worker", &json!({"x": 1})), {"odd": true}, call(1, "worker", &json!({})),
        {"jsonrpc": "2.0", "method": "notifications/other"}, call(2, "worker", &json!({"x": 2})),
    ]);
    let lists = json!({"jsonrpc": "2.0", "id": 8, "method": "tools/list", "params": {"cursor": 5}});
    let mut ask = async |line: &str| -> Value {
        pipe.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        pipe.read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    };
    let reported = |answer: &Value| json!([answer.get("id"), answer["error"]["code"]]);
    assert_eq!(reported(&ask(&early.to_string()).await), json!([null, -32600]));
    assert_eq!(ask(&init.to_string()).await["id"], 0);
    assert_eq!(reported(&ask(&format!("{ready}\n{{\"id\": 1,")).await), json!([null, -32700]));
    assert_eq!(reported(&ask("hello").await), json!([null, -32700]));
    assert_eq!(reported(&ask("{\"id\": 4}").await), json!([4, -32600]));
    assert_eq!(reported(&ask(&lists.to_string()).await), json!([8, -32602]));
    let answers = ask(&batch.to_string()).await;
    let mut all: Vec<Value> = answers
        .as_array()
        .unwrap_or_else(|| panic!("no batch: {answers}"))
        .iter()
        .map(|answer| json!([answer["id"], answer["result"]["structuredContent"], answer["error"]["code"]]))
        .collect();
    all.sort_by_key(ToString::to_string);
    let expected = json!([[1, null, -32600], [1, {"x": 1}, null], [2, {"x": 2}, null], [null, null, -32600]]);
    assert_eq!(Value::Array(all), expected);
    let ping = json!({"jsonrpc": "2.0", "id": 9, "method": "ping"});
    assert_eq!(ask(&ping.to_string()).await["result"], json!({}), "the connection is still there");
}

#[tokio::test]
async fn a_client_that_sends_too_much_gets_the_response() {
    let server = Server::start().await;
    let mut stream = tokio::net::TcpStream::connect(server.addr).await.unwrap();
    let part = vec![b'x'; 1024 * 1024];
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {}\r\n\
         content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        server.token,
        40 * part.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..40 {
        stream.write_all(&part).await.unwrap();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413") && answer.contains("-32600"), "{answer}");
}

#[tokio::test]
async fn arguments_arrive_as_they_were_sent_or_not_at_all() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-03-26").await;
    let pipe =
        server.request(Method::GET, "/mcp").header("connection", "upgrade").header("upgrade", "mcp-lines");
    let mut pipe = BufReader::new(pipe.send().await.unwrap().upgrade().await.unwrap());
    let mut ask_line = async |line: &str| -> Value {
        pipe.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        pipe.read_line(&mut answer).await.unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    };
    let modern =
        modern_message("tools/call", json!({"name": "worker", "arguments": "ARGUMENTS"})).to_string();
    let older = call(1, "worker", &json!("ARGUMENTS")).to_string();
    let too_large = "argument `n`: the integer `18446744073709551616` does not fit in 64 bits";
    for (arguments, expected) in [
        (r#"{"n": 18446744073709551616}"#, too_large),
        (r#"{"n": 1, "n": 2}"#, "duplicate key `n`"),
        (r#"{"a": {"n": 1, "n": 1}}"#, "argument `a`: duplicate key `n`"),
    ] {
        let fill = |message: &str| message.replace("\"ARGUMENTS\"", arguments);
        let stateless = send(
            request(&server, "/mcp", &server.token, &Value::Null)
                .header("mcp-protocol-version", MODERN)
                .header("mcp-method", "tools/call")
                .header("mcp-name", "worker")
                .body(fill(&modern)),
        );
        let in_session = send(session.request(&Value::Null).body(fill(&older)));
        let in_batch = send(session.request(&Value::Null).body(format!("[{}]", fill(&older))));
        for (what, answer) in [
            ("stateless", stateless.await.last()),
            ("session", in_session.await.last()),
            ("batch", in_batch.await.last()),
            ("line", ask_line(&fill(&modern)).await),
        ] {
            let error = &answer["error"];
            let message = error["message"].as_str().unwrap_or_default();
            assert_eq!((&answer["id"], &error["code"]), (&json!(1), &json!(-32602)), "{what}: {answer}");
            assert!(message.starts_with(expected), "{what}: {answer}");
        }
    }
    let twice = older.replace("\"arguments\"", "\"arguments\":{},\"arguments\"");
    let answer = send(session.request(&Value::Null).body(twice)).await.last();
    assert_eq!(answer["error"]["message"], "duplicate key `arguments`", "{answer}");
    let exact = json!({"n": u64::MAX, "m": i64::MIN, "f": 1e30});
    let answer = send(session.request(&call(1, "worker", &exact))).await.last();
    assert_eq!(answer["result"]["structuredContent"], exact, "{answer}");
    let (_, calls) = server.get("/api/calls").await;
    assert_eq!(calls["data"]["total"], 1, "rejected calls do not run: {calls}");
}
