//! The connection that carries messages line by line, as `haft mcp` uses it.

use reqwest::{Method, Response, Upgraded};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

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

#[tokio::test]
async fn messages_go_both_ways_until_the_server_stops() {
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
}

#[tokio::test]
async fn a_pipe_is_refused_like_any_request() {
    let server = Server::start().await;
    let request = server.bare(Method::GET, "/mcp");
    let response =
        request.header("connection", "upgrade").header("upgrade", "mcp-lines").send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(ask(&server, "/mcp/bundles/nowhere").await.status(), 404);
}
