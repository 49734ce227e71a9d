//! Access to `/mcp`, and the visible tools.

use reqwest::Method;
use serde_json::json;

use super::client::{modern, names, send, token_of};
use crate::harness::{Server, code, function_tool};

#[tokio::test]
async fn without_a_token_a_client_gets_the_metadata_url() {
    let server = Server::start().await;
    for (path, header) in [("/mcp", None), ("/mcp/bundles/x", Some("Bearer wrong"))] {
        let mut request = server.bare(Method::POST, path).body("{}");
        if let Some(header) = header {
            request = request.header("authorization", header);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 401);
        let challenge = response.headers()["www-authenticate"].to_str().unwrap().to_owned();
        let wrong = if header.is_some() { "error=\"invalid_token\", " } else { "" };
        let place = format!("http://{}/.well-known/oauth-protected-resource{path}", server.addr);
        assert_eq!(challenge, format!("Bearer {wrong}scope=\"haft:call\", resource_metadata=\"{place}\""));
        let (status, document) = crate::harness::send(
            server.bare(Method::GET, &format!("/.well-known/oauth-protected-resource{path}")),
        )
        .await;
        let expected = json!({
            "resource": format!("http://{}{path}", server.addr),
            "resource_name": "haft",
            "authorization_servers": [format!("http://{}", server.addr)],
            "scopes_supported": ["haft:read", "haft:call"],
            "bearer_methods_supported": ["header"],
        });
        assert_eq!((status, document), (200, expected));
    }
}

#[tokio::test]
async fn a_viewer_sees_tools_and_calls_none() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let token = token_of(&server, "look", "viewer").await;
    let list = send(modern(&server, "/mcp", &token, "tools/list", json!({}))).await.last();
    assert!(names(&list).contains(&"worker"), "{list}");
    let call =
        send(modern(&server, "/mcp", &token, "tools/call", json!({"name": "worker", "arguments": {}}))).await;
    assert_eq!(
        call.last()["result"]["content"][0]["text"],
        "Tool call failed: this token can list tools, but not call them; use a token with the role `caller`"
    );
    assert_eq!(call.last()["result"]["isError"], true);
    assert_eq!(server.get("/api/calls").await.1["data"]["total"], 0);
}

#[tokio::test]
async fn a_bundle_is_a_view_of_its_own() {
    let server = Server::start().await;
    let mut other = function_tool("other", "echo");
    other["bundle"] = json!("web");
    assert_eq!(
        server.put("/api/tools/bundles/web", json!({"slug": "web", "display_name": "Web"})).await.0,
        201
    );
    server.create(other).await;
    server.create(function_tool("worker", "echo")).await;
    let list = send(modern(&server, "/mcp/bundles/web", &server.token, "tools/list", json!({}))).await.last();
    assert_eq!(names(&list), ["other"]);
    for (name, expected) in [("other", true), ("worker", false), ("user-created:worker", false)] {
        let params = json!({"name": name, "arguments": {"x": 1}});
        let answer =
            send(modern(&server, "/mcp/bundles/web", &server.token, "tools/call", params)).await.last();
        assert_eq!(answer.get("result").is_some(), expected, "{name}: {answer}");
    }
    for path in ["/mcp/bundles/nowhere", "/mcp/bundles/", "/mcp/agents/x", "/mcp/bundles/web/x", "/mcp/"] {
        let answer = send(modern(&server, path, &server.token, "tools/list", json!({}))).await;
        assert_eq!((answer.status, code(&answer.last())), (404, "not_found"), "{path}");
    }
}

#[tokio::test]
async fn unknown_hosts_and_origins_are_rejected() {
    let server = Server::start_with(|settings| {
        settings.mcp.allowed_hosts = vec!["tools.example.com".to_owned()];
        settings.mcp.public_url = Some("https://public.example.com".to_owned());
        settings.server.cors_origins = vec!["https://app.example.com".to_owned()];
    })
    .await;
    let own = format!("http://{}", server.addr);
    for (header, value, expected) in [
        ("host", "tools.example.com:8080", 200),
        ("host", "public.example.com", 200),
        ("host", "localhost:1", 200),
        ("host", "[::1]:8080", 200),
        ("host", "192.168.0.7", 200),
        ("host", "evil.example.com", 403),
        ("host", "localhost.evil.com", 403),
        ("origin", own.as_str(), 200),
        ("origin", "https://app.example.com", 200),
        ("origin", "http://evil.example.com", 403),
        ("origin", "null", 403),
        ("origin", "http://localhost:3000", 403),
    ] {
        let request = modern(&server, "/mcp", &server.token, "tools/list", json!({})).header(header, value);
        let answer = send(request).await;
        assert_eq!(answer.status, expected, "{header}: {value}: {answer:?}");
    }
    let (_, document) =
        crate::harness::send(server.bare(Method::GET, "/.well-known/oauth-protected-resource")).await;
    assert_eq!(document["resource"], "https://public.example.com/mcp");
}

#[tokio::test]
async fn approval_required_has_a_hint() {
    let server = Server::start().await;
    let mut guarded = function_tool("guarded", "echo");
    guarded["requires_confirmation"] = json!(true);
    server.create(guarded).await;
    let params = || json!({"name": "guarded", "arguments": {}});
    let plain = token_of(&server, "plain", "caller").await;
    let refused = send(modern(&server, "/mcp", &plain, "tools/call", params())).await.last();
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(
        text.starts_with("Tool call failed: a person has to approve this call first (approval "),
        "{text}"
    );
    assert!(text.ends_with("); repeat the same call later to get its result"), "{text}");
    let elevated = send(modern(&server, "/mcp", &server.token, "tools/call", params())).await.last();
    assert_eq!(elevated["result"]["isError"], false, "{elevated}");
    // The elevation can be kept back.
    let request = modern(&server, "/mcp", &server.token, "tools/call", params());
    let kept = send(request.header("x-haft-elevated", "false")).await.last();
    assert_eq!(kept["result"]["isError"], true, "{kept}");
}
