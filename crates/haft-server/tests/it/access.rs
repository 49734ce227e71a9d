//! Tokens, roles, and who may do what.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};

async fn token_of(server: &Server, body: Value) -> String {
    let (status, answer) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_token_only_health_is_visible() {
    let server = Server::start().await;
    for path in ["/api/tools", "/tools", "/api/calls", "/metrics", "/api/credentials", "/tools/bundles"] {
        let (status, answer) = send(server.bare(Method::GET, path)).await;
        assert_eq!((status, code(&answer)), (401, "unauthorized"), "{path}");
    }
    for header in ["Bearer", "Bearer ", "Basic abc", "Bearer wrong", "wrong"] {
        let (status, _) = send(server.bare(Method::GET, "/api/tools").header("authorization", header)).await;
        assert_eq!(status, 401, "{header}");
    }
    for path in ["/healthz", "/readyz"] {
        assert_eq!(send(server.bare(Method::GET, path)).await.0, 200, "{path}");
    }
}

#[tokio::test]
async fn every_documented_route_requires_a_token() {
    let server = Server::start().await;
    let (_, document) = send(server.bare(Method::GET, "/api/openapi.json")).await;
    let mut asked = 0;
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["security"] == json!([{}]) {
                // Where a browser comes back to (what it brings along is known to nobody else), and what tells no secret.
                let callbacks = ["/mcp-servers/oauth/callback", "/accounts/callback"];
                let open = ["/healthz", "/readyz", "/login", "/logout"];
                assert!([&callbacks[..], &open[..]].concat().contains(&path.as_str()), "{path}");
                continue;
            }
            let method: Method = method.to_uppercase().parse().unwrap();
            let root = if operation["servers"][0]["url"] == "/" { "" } else { "/api" };
            let path = format!("{root}{}", path.replace(['{', '}'], ""));
            let (status, answer) = send(server.bare(method.clone(), &path)).await;
            assert_eq!((status, code(&answer)), (401, "unauthorized"), "{method} {path}");
            asked += 1;
        }
    }
    assert!(asked >= 35, "{asked}");
}

#[tokio::test]
async fn roles_include_the_ones_before_them() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let tasks = [
        ("viewer", Method::GET, "/api/tools", json!({})),
        ("caller", Method::POST, "/api/tools/worker/invoke", json!({})),
        ("editor", Method::PATCH, "/api/tools/worker", json!({"enabled": true})),
        ("editor", Method::POST, "/api/tools/worker/test", json!({})),
        ("admin", Method::PUT, "/api/credentials/KEY", json!({"value": "v"})),
        ("admin", Method::GET, "/api/tokens", json!({})),
    ];
    let roles = ["viewer", "caller", "editor", "admin"];
    for (rank, role) in roles.iter().enumerate() {
        let token = token_of(&server, json!({"name": role, "role": role})).await;
        for (needed, method, path, body) in &tasks {
            let allowed = rank >= roles.iter().position(|r| r == needed).unwrap();
            let request = server.bare(method.clone(), path).bearer_auth(&token).body(body.to_string());
            let (status, answer) = send(request).await;
            assert_eq!(status, if allowed { 200 } else { 403 }, "{role} {method} {path} {answer}");
        }
    }
}

#[tokio::test]
async fn a_token_is_shown_once_and_can_be_revoked() {
    let server = Server::start().await;
    let (_, answer) = server.post("/api/tokens", json!({"name": "ci", "role": "caller"})).await;
    let token = answer["data"]["token"].as_str().unwrap().to_owned();
    let id = answer["data"]["id"].as_str().unwrap();
    let (_, list) = server.get("/api/tokens").await;
    assert!(!list.to_string().contains(&token) && list.to_string().contains("\"ci\""), "{list}");
    assert_eq!(send(server.bare(Method::GET, "/api/tools").bearer_auth(&token)).await.0, 200);
    assert_eq!(server.delete(&format!("/api/tokens/{id}")).await.0, 200);
    assert_eq!(send(server.bare(Method::GET, "/api/tools").bearer_auth(&token)).await.0, 401);
    for bad in [
        json!({}),
        json!({"name": ""}),
        json!({"name": "x", "role": "king"}),
        json!({"name": "x", "expires_in": "soon"}),
    ] {
        assert_eq!(server.post("/api/tokens", bad.clone()).await.0, 400, "{bad}");
    }
}

#[tokio::test]
async fn elevated_tools_run_for_elevated_tokens_only() {
    let server = Server::start().await;
    let mut tool = function_tool("risky", "echo");
    tool["policy"] = json!("elevated");
    server.create(tool).await;
    let mut never = function_tool("never", "echo");
    never["policy"] = json!("deny");
    server.create(never).await;
    let plain = token_of(&server, json!({"name": "plain"})).await;
    let raised = token_of(&server, json!({"name": "raised", "elevated": true})).await;
    for (token, path, expected) in [
        (&plain, "/api/tools/risky/invoke", (202, "approval_required")),
        (&raised, "/api/tools/risky/invoke", (200, "")),
        (&raised, "/api/tools/never/invoke", (403, "policy_denied")),
    ] {
        let (status, answer) = send(server.bare(Method::POST, path).bearer_auth(token)).await;
        assert_eq!((status, code(&answer)), expected, "{path}");
    }
}

#[tokio::test]
async fn debug_mode_needs_an_editor_where_production_is_the_rule() {
    let server = Server::start_with(|settings| settings.mode = haft_core::runnable::Mode::Production).await;
    server.create(function_tool("draft", "echo")).await;
    let plain = token_of(&server, json!({"name": "plain"})).await;
    let call = |query: &str| {
        send(server.bare(Method::POST, &format!("/api/tools/draft/invoke{query}")).bearer_auth(&plain))
    };
    assert_eq!(code(&call("").await.1), "not_published");
    assert_eq!(call("?mode=debug").await.0, 403);
    assert_eq!(server.post("/api/tools/draft/invoke?mode=debug", json!({})).await.0, 200);
    let (_, answer) = server.get("/api/tools/definitions/all").await;
    let text = answer.to_string();
    assert!(!text.contains("\"draft\""), "a model is not offered what production refuses: {text}");
}

#[tokio::test]
async fn credential_values_are_never_returned() {
    let server = Server::start().await;
    let (status, answer) = server.put("/api/credentials/API_KEY", json!({"value": "s3cr3t-value"})).await;
    assert_eq!(status, 200, "{answer}");
    let (_, answer) = server.get("/api/credentials").await;
    assert_eq!(answer["data"]["credentials"][0]["name"], "API_KEY");
    assert!(!answer.to_string().contains("s3cr3t-value"));
    for (name, body) in [
        ("bad%20name", json!({"value": "x"})),
        ("API_KEY", json!({"value": "***"})),
        ("API_KEY", json!({"value": 5})),
        ("API_KEY", json!({"valu": "s3cr3t-value"})),
    ] {
        let (status, answer) = server.put(&format!("/api/credentials/{name}"), body).await;
        assert_eq!(status, 400, "{answer}");
        assert!(!answer.to_string().contains("s3cr3t-value"), "{answer}");
    }
    for entry in walk(server.home.path()) {
        let bytes = std::fs::read(&entry).unwrap();
        assert!(!bytes.windows(12).any(|part| part == b"s3cr3t-value"), "{}", entry.display());
    }
    assert_eq!(server.delete("/api/credentials/API_KEY").await.0, 200);
    assert_eq!(server.delete("/api/credentials/API_KEY").await.0, 404);
}

fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}
