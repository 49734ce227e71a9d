//! The connection that carries messages line by line, as `haft mcp` uses it.

use reqwest::{Method, Response, Upgraded};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};

use super::client::{modern_message, names};
use crate::harness::{Server, function_tool};

async fn ask(server: &Server, path: &str) -> Response {
    let request = server.request(Method::GET, path);
    request.header("connection", "upgrade").header("upgrade", "mcp-lines").send().await.unwrap()
}

async fn exchange(pipe: &mut BufReader<Upgraded>, message: &Value) -> Value {
    pipe.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    next(pipe).await
}

async fn next(pipe: &mut BufReader<Upgraded>) -> Value {
    let mut line = String::new();
    pipe.read_line(&mut line).await.unwrap();
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
}

/// What comes until the other end closes.
async fn rest(pipe: &mut BufReader<Upgraded>) -> Vec<Value> {
    let mut text = String::new();
    pipe.read_to_string(&mut text).await.unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn a_pipe_carries_messages_both_ways_until_shutdown() {
    let mut server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let response = ask(&server, "/mcp").await;
    assert_eq!(response.status(), 101);
    let mut pipe = BufReader::new(response.upgrade().await.unwrap());
    let init = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let answer = exchange(&mut pipe, &init).await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "haft");
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    pipe.write_all(format!("{ready}\n").as_bytes()).await.unwrap();
    let list = exchange(&mut pipe, &json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})).await;
    assert!(names(&list).contains(&"worker"));
    server.create(function_tool("fresh", "echo")).await;
    assert_eq!(next(&mut pipe).await["method"], "notifications/tools/list_changed");
    server.halt().await;
    let mut line = String::new();
    assert_eq!(pipe.read_line(&mut line).await.unwrap_or(0), 0, "{line}");
}

#[tokio::test]
async fn the_stateless_version_needs_no_greeting() {
    let server = Server::start().await;
    let response = ask(&server, "/mcp/bundles/builtin").await;
    let mut pipe = BufReader::new(response.upgrade().await.unwrap());
    let list = exchange(&mut pipe, &modern_message("tools/list", json!({}))).await;
    assert!(names(&list).contains(&"hello"), "{list}");
    let call = modern_message("tools/call", json!({"name": "hello", "arguments": {"x": 1}}));
    assert_eq!(exchange(&mut pipe, &call).await["result"]["structuredContent"], json!({"x": 1}));
    let level = modern_message("logging/setLevel", json!({"level": "info"}));
    assert_eq!(exchange(&mut pipe, &level).await["error"]["code"], -32601);
}

#[tokio::test]
async fn an_upgrade_needs_a_token_like_any_request() {
    let server = Server::start().await;
    let request = server.bare(Method::GET, "/mcp");
    let response =
        request.header("connection", "upgrade").header("upgrade", "mcp-lines").send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(ask(&server, "/mcp/bundles/nowhere").await.status(), 404);
}

#[tokio::test]
async fn a_pipe_closed_by_the_client_ends_after_its_responses() {
    let server = Server::start().await;
    let response = ask(&server, "/mcp").await;
    let mut pipe = BufReader::new(response.upgrade().await.unwrap());
    let listen = modern_message("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let begun = exchange(&mut pipe, &listen).await;
    assert_eq!(begun["method"], "notifications/subscriptions/acknowledged", "{begun}");
    let mut list = modern_message("tools/list", json!({}));
    list["id"] = json!(2);
    // The last line without its end.
    pipe.write_all(list.to_string().as_bytes()).await.unwrap();
    pipe.shutdown().await.unwrap();
    let mut answered: Vec<Value> =
        rest(&mut pipe).await.iter().filter_map(|message| message.get("id").cloned()).collect();
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, [json!(1), json!(2)]);
}

#[tokio::test]
async fn unread_log_lines_do_not_delay_a_response() {
    let server = Server::start().await;
    server
        .create(json!({
            "name": "talker", "description": "Says something again and again", "runtime": "bash",
            "body": "for i in 1 2 3 4 5; do echo \"$i\" >&2; sleep 0.2; done; echo done",
            "parameters": {"type": "object", "properties": {}}, "sandbox": true,
        }))
        .await;
    let response = ask(&server, "/mcp").await;
    let mut pipe = BufReader::new(response.upgrade().await.unwrap());
    let init = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    exchange(&mut pipe, &init).await;
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    pipe.write_all(format!("{ready}\n").as_bytes()).await.unwrap();
    let level = json!({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "info"}});
    pipe.write_all(format!("{level}\n").as_bytes()).await.unwrap();
    while next(&mut pipe).await["id"] != 1 {}
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "talker"}});
    pipe.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    loop {
        let message = next(&mut pipe).await;
        if message["method"] == "notifications/message" {
            break;
        }
        assert_ne!(message["id"], 2, "nothing was told: {message}");
    }
    pipe.shutdown().await.unwrap();
    let messages = rest(&mut pipe).await;
    let answer = messages.iter().find(|message| message["id"] == 2);
    let answer = answer.unwrap_or_else(|| panic!("no answer among {messages:?}"));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
}
