//! The versions with sessions, from 2024-11-05 on.

use reqwest::Method;
use serde_json::json;

use super::client::{Session, names, read_until, request, send, token_of};
use crate::harness::{Server, function_tool, poll};

#[tokio::test]
async fn every_older_version_lists_and_calls() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = Session::open(&server, "/mcp", &server.token, version).await;
        assert!(names(&session.ask("tools/list", json!({})).await.last()).contains(&"worker"), "{version}");
        let params = json!({"name": "worker", "arguments": {"x": 1}});
        let result = session.ask("tools/call", params).await.last()["result"].take();
        let expected = json!({
            "content": [{"type": "text", "text": "{\"x\":1}"}],
            "structuredContent": {"x": 1}, "isError": false,
        });
        assert_eq!(result, expected, "{version}");
        assert_eq!(session.ask("ping", json!({})).await.last()["result"], json!({}));
    }
}

#[tokio::test]
async fn an_unknown_protocol_version_is_negotiated_down() {
    let server = Server::start().await;
    for asked in ["1999-01-01", "2026-07-28", "2031-12-31"] {
        let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
        }});
        let answer = send(request(&server, "/mcp", &server.token, &message)).await;
        assert_eq!(answer.last()["result"]["protocolVersion"], "2025-11-25", "{asked}");
    }
}

#[tokio::test]
async fn a_session_is_for_the_token_that_opened_it() {
    let server = Server::start().await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    let other = token_of(&server, "other", "admin").await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    for (what, path, token, id, expected) in [
        ("its own", "/mcp", &server.token, session.id.as_str(), 200),
        ("another token", "/mcp", &other, session.id.as_str(), 404),
        ("another view", "/mcp/bundles/builtin", &server.token, session.id.as_str(), 404),
        ("no such session", "/mcp", &server.token, "no-such-session", 404),
    ] {
        let answer = send(request(&server, path, token, &message).header("mcp-session-id", id)).await;
        assert_eq!(answer.status, expected, "{what}: {answer:?}");
    }
    let delete = |token: &str| {
        let request = server.bare(Method::DELETE, "/mcp").bearer_auth(token);
        request.header("mcp-session-id", &session.id)
    };
    assert_eq!(send(delete(&other)).await.status, 404);
    assert_eq!(session.ask("tools/list", json!({})).await.status, 200, "it is still there");
    assert_eq!(send(delete(&server.token)).await.status, 204);
    assert_eq!(session.ask("tools/list", json!({})).await.status, 404, "it is over");
    assert_eq!(send(request(&server, "/mcp", &server.token, &message)).await.status, 400, "without one");
}

#[tokio::test]
async fn sessions_are_notified_of_new_tools_until_shutdown() {
    let mut server = Server::start().await;
    let mut response = {
        let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
        let mut response = session.listen().header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert!(!response.headers().contains_key("content-encoding"));
        server.create(function_tool("fresh", "echo")).await;
        read_until(&mut response, "notifications/tools/list_changed").await;
        response
    };
    server.halt().await;
    while response.chunk().await.unwrap().is_some() {}
}

#[tokio::test]
async fn a_call_is_cancelled_by_a_message() {
    let server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    let call = session.ask("tools/call", json!({"name": "slow", "arguments": {}}));
    let cancel = async {
        server.gate.entered(1).await;
        let message = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": 7, "reason": "enough"}});
        assert_eq!(send(session.request(&message)).await.status, 202);
    };
    let (answer, ()) = tokio::join!(call, cancel);
    assert!(answer.messages().is_empty(), "a cancelled request has no answer: {answer:?}");
    poll(async || {
        let (_, calls) = server.get("/api/calls").await;
        (calls["data"]["calls"][0]["status"] == "cancelled").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_request_with_the_id_of_a_running_one_is_rejected() {
    let server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    server.create(function_tool("echo", "echo")).await;
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    let first = session.ask("tools/call", json!({"name": "slow", "arguments": {}}));
    let second = async {
        server.gate.entered(1).await;
        let second = session.ask("tools/call", json!({"name": "echo", "arguments": {}})).await.last();
        server.gate.open();
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second["error"]["code"], -32600, "{second}");
    assert_eq!(first.last()["result"]["isError"], false);
    // The id is free again.
    let third = session.ask("tools/call", json!({"name": "echo", "arguments": {"x": 1}})).await.last();
    assert_eq!(third["result"]["structuredContent"], json!({"x": 1}));
}

#[tokio::test]
async fn older_versions_get_supported_content_types() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let link = json!({"type": "resource_link", "uri": "file:///a.txt", "name": "a"});
    let sound = json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"});
    for (version, primed, links, sounds) in [
        ("2024-11-05", false, false, false),
        ("2025-03-26", false, false, true),
        ("2025-06-18", false, true, true),
        ("2025-11-25", true, true, true),
    ] {
        let session = Session::open(&server, "/mcp", &server.token, version).await;
        let call = async |block: &serde_json::Value| {
            session.ask("tools/call", json!({"name": "echo", "arguments": block})).await
        };
        let answer = call(&link).await;
        assert_eq!(answer.text.contains("retry:"), primed, "{version}: {}", answer.text);
        let block = &answer.last()["result"]["content"][0];
        assert_eq!(block["type"], if links { "resource_link" } else { "text" }, "{version}: {block}");
        let block = call(&sound).await.last()["result"]["content"][0].clone();
        assert_eq!(block["type"], if sounds { "audio" } else { "text" }, "{version}: {block}");
    }
}

#[tokio::test]
async fn a_large_result_is_not_an_event() {
    let server = Server::start_with(|settings| settings.results.max_inline_bytes = 1 << 20).await;
    server.create(function_tool("echo", "echo")).await;
    for version in ["2025-06-18", "2025-11-25"] {
        let session = Session::open(&server, "/mcp", &server.token, version).await;
        for (length, kind) in [(10, "text/event-stream"), (500_000, "application/json")] {
            let arguments = json!({"x": "y".repeat(length)});
            let answer = session.ask("tools/call", json!({"name": "echo", "arguments": arguments})).await;
            assert_eq!((answer.status, answer.kind.as_str()), (200, kind), "{version}: {length}");
            let message = answer.last();
            assert_eq!(message["id"], 7);
            assert_eq!(message["result"]["structuredContent"], arguments, "{version}: {length}");
        }
    }
}

#[tokio::test]
async fn only_tools_are_declared_and_served() {
    let server = Server::start().await;
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"},
    }});
    let answer = send(request(&server, "/mcp", &server.token, &message)).await;
    let expected = json!({"logging": {}, "tools": {"listChanged": true}});
    assert_eq!(answer.last()["result"]["capabilities"], expected);
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    for method in ["prompts/list", "resources/list", "resources/templates/list"] {
        let answer = session.ask(method, json!({})).await.last();
        assert_eq!(answer["error"]["code"], -32601, "{method}: {answer}");
    }
}

#[tokio::test]
async fn found_tools_join_the_list_of_a_session() {
    let server = Server::start_whole(|settings| settings.mcp.compact_above = 3).await;
    for number in 0..25 {
        server.create(function_tool(&format!("lamp-{number}"), "echo")).await;
        server.create(function_tool(&format!("door-{number}"), "echo")).await;
    }
    let session = Session::open(&server, "/mcp", &server.token, "2025-11-25").await;
    let list = async || {
        let answer = session.ask("tools/list", json!({})).await.last();
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let search = async |query: &str| {
        let arguments = json!({"query": query, "limit": 20});
        session.ask("tools/call", json!({"name": "search_tools", "arguments": arguments})).await
    };
    let count = |list: &[String], start: &str| list.iter().filter(|name| name.starts_with(start)).count();
    assert_eq!(list().await, ["call_tool", "describe_tool", "search_tools"]);
    let mut events = session.listen().send().await.unwrap();
    search("lamp").await;
    read_until(&mut events, "notifications/tools/list_changed").await;
    let found = list().await;
    assert_eq!(count(&found, "lamp-"), found.len() - 3, "{found:?}");
    assert!(found.len() > 10, "{found:?}");
    search("door").await;
    search("door-24").await;
    let found = list().await;
    assert!(found.contains(&"door-24".to_owned()) && found.len() == 20 + 3, "{found:?}");
}
