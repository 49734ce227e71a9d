//! Imports of curl commands, definitions and MCP client configurations.

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::routing::get;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, send};
use crate::tenants::with;

/// Returns the name and the action of each item.
fn actions(answer: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = answer["data"]["items"].as_array().unwrap_or_else(|| panic!("{answer}"));
    items.iter().map(|item| (text(&item["name"]), text(&item["action"]))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, action)| ((*name).to_owned(), (*action).to_owned())).collect()
}

#[tokio::test]
async fn a_curl_command_becomes_a_tool() {
    let server = Server::start().await;
    let upstream = Upstream::serve(Router::new().route("/echo", get(|| async { "done" }))).await.unwrap();
    let command =
        format!("curl '{}' -H 'Authorization: Bearer topaz' -H 'X-A: b'", upstream.url("/echo?page=2"));
    let body = json!({"command": command, "dry_run": true});
    let (status, answer) = server.post("/api/import/curl", body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(actions(&answer), pairs(&[("local_echo", "create")]));
    assert!(!answer.to_string().contains("topaz"), "{answer}");
    let item = &answer["data"]["items"][0];
    let codes: Vec<_> = item["warnings"].as_array().unwrap().iter().map(|one| &one["code"]).collect();
    assert_eq!(codes, ["replaced_credential", "unknown_name"], "{answer}");
    assert_eq!(item["definition"]["implementation"]["method"], "GET");
    assert_eq!(server.get("/api/tools/local_echo").await.0, 404, "a dry run stores nothing");

    let body = json!({"command": command, "name": "echo_page", "bundle": "imported"});
    let (_, answer) = server.post("/api/import/curl", body.clone()).await;
    assert_eq!(actions(&answer), pairs(&[("echo_page", "create")]));
    server.put("/api/credentials/LOCAL_TOKEN", json!({"value": "jade"})).await;
    let (_, outcome) = server.invoke("echo_page", json!({"page": 3})).await;
    assert_eq!((&outcome["ok"], &outcome["value"]), (&json!(true), &json!("done")), "{outcome}");
    let seen = upstream.seen();
    assert_eq!((&*seen[0].target, &*seen[0].headers["authorization"]), ("/echo?page=3", "Bearer jade"));
    let (_, answer) = server.post("/api/import/curl", body).await;
    assert_eq!(actions(&answer), pairs(&[("echo_page", "replace")]));

    let (status, answer) = server.post("/api/import/curl", json!({"command": "wget x"})).await;
    assert_eq!((status, actions(&answer)), (200, pairs(&[("curl", "error")])));
    assert_eq!(answer["data"]["items"][0]["message"], "the command does not start with `curl`");
}

#[tokio::test]
async fn several_definitions_are_imported_by_choice() {
    let server = Server::start().await;
    let text = "name: one\ndescription: First\nimplementation: {type: function, function: echo}\n---\n\
                name: two\ndescription: Second\nimplementation: {type: function, function: echo}\n---\n\
                name: three\nruntime: cobol\n";
    let (status, answer) = server.post("/api/import/tools", json!({"text": text, "dry_run": true})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(actions(&answer), pairs(&[("one", "create"), ("two", "create"), ("three", "error")]));
    assert_eq!((&answer["data"]["created"], &answer["data"]["failed"]), (&json!(2), &json!(1)));
    let message = answer["data"]["items"][2]["message"].as_str().unwrap();
    assert!(message.contains("cobol") || message.contains("runtime"), "{message}");
    let body = json!({"text": text, "select": ["two"], "bundle": "chosen"});
    let (_, answer) = server.post("/api/import/tools", body).await;
    assert_eq!(actions(&answer), pairs(&[("one", "skip"), ("two", "create"), ("three", "error")]));
    assert_eq!(server.get("/api/tools/one").await.0, 404);
    assert_eq!(server.get("/api/tools/two").await.1["data"]["bundle"], "chosen");

    // The text itself, in other forms.
    let skill = "---\nname: greet\ndescription: Greets\nruntime: bash\n---\necho hello\n";
    let request = server.request(Method::POST, "/api/import/tools").header("content-type", "text/plain");
    let (_, answer) = send(request.body(skill)).await;
    assert_eq!(actions(&answer), pairs(&[("greet", "create")]), "{answer}");
    let list = json!([function_tool("four", "echo"), function_tool("five", "echo")]).to_string();
    let request = server.request(Method::POST, "/api/import/tools?dry_run=true&select=five");
    let (_, answer) = send(request.header("content-type", "text/plain").body(list)).await;
    assert_eq!(actions(&answer), pairs(&[("four", "skip"), ("five", "create")]), "{answer}");
    assert_eq!(server.get("/api/tools/five").await.0, 404);

    let (status, answer) = server.post("/api/import/tools", json!({"text": "  "})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let (_, made) = server.post("/api/tokens", json!({"name": "caller", "role": "caller"})).await;
    let caller = made["data"]["token"].as_str().unwrap();
    for (path, body) in [
        ("/api/import/tools", json!({"text": text, "dry_run": true})),
        ("/api/import/curl", json!({"command": "curl http://x.test"})),
        ("/api/import/mcp", json!({"config": {"mcpServers": {}}})),
    ] {
        assert_eq!(with(&server, caller, Method::POST, path, body).await.0, 403, "{path}");
    }
}

#[tokio::test]
async fn mcp_servers_are_imported_by_admins() {
    let server = Server::start().await;
    let config = json!({"mcpServers": {
        "docs": {"url": "http://127.0.0.1:9/mcp", "disabled": true, "headers": {"Authorization": "Bearer topaz"}},
        "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
        "files": {"command": "mcp-server-files", "disabled": true},
    }});
    let body = json!({"config": config, "dry_run": true});
    let (status, answer) = server.post("/api/import/mcp", body).await;
    assert_eq!(status, 200, "{answer}");
    let expected = pairs(&[("docs", "create"), ("old", "error"), ("files", "create")]);
    assert_eq!(actions(&answer), expected);
    assert_eq!(server.get("/api/mcp-servers").await.1["data"]["total"], 0);

    let (_, made) = server.post("/api/tokens", json!({"name": "editor", "role": "editor"})).await;
    let editor = made["data"]["token"].as_str().unwrap();
    let (_, answer) = with(&server, editor, Method::POST, "/api/import/mcp", json!({"config": config})).await;
    assert_eq!(actions(&answer), pairs(&[("docs", "error"), ("old", "error"), ("files", "error")]));

    // As text, with a choice.
    let body = json!({"config": config.to_string(), "select": ["files"]});
    let (_, answer) = server.post("/api/import/mcp", body.clone()).await;
    assert_eq!(actions(&answer), pairs(&[("docs", "skip"), ("old", "skip"), ("files", "create")]));
    let (_, list) = server.get("/api/mcp-servers").await;
    assert_eq!((&list["data"]["total"], &list["data"]["mcp_servers"][0]["id"]), (&json!(1), &json!("files")));
    let (_, answer) = server.post("/api/import/mcp", body).await;
    assert_eq!(actions(&answer)[2], ("files".to_owned(), "error".to_owned()));
    let (status, answer) = server.post("/api/import/mcp", json!({"config": "{"})).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
}
