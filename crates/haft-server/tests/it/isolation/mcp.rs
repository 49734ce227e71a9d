//! Walks the methods of MCP, and calls the built-in tools, with tokens of a second tenant.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::first_tenant::{
    BROKEN_TOOL, BUNDLE, CONFIRMED_TOOL, FirstTenant, GATED_TOOL, HTTP_TOOL, MCP_SERVER, PIPELINE, SKILL,
    TOOL, TOOLSET,
};
use super::probe::Probe;
use crate::harness::function_tool;
use crate::mcp::client::{Answer, Session, modern, names, read_until, request, send};
use crate::tenants;

/// The capabilities of the server whose methods are below.
const CAPABILITIES: [&str; 5] = ["extensions", "logging", "prompts", "resources", "tools"];

/// The extensions of the server whose methods are below.
const EXTENSIONS: [&str; 2] = ["io.modelcontextprotocol/skills", "io.modelcontextprotocol/ui"];

/// Built-in tools that have no access to anything of a tenant.
const PLAIN_TOOLS: [&str; 10] = [
    "clock",
    "datetime_utils",
    "function_call",
    "hello",
    "http_request",
    "json_transform",
    "send_email",
    "send_whatsapp",
    "web_fetch",
    "web_search",
];

/// Every method that a client can send, with parameters that name things of the first tenant.
fn methods(first: &FirstTenant) -> Vec<(&'static str, Value)> {
    let tool = json!({"name": TOOL, "arguments": {}});
    let uri = json!({"uri": format!("haft://tools/{TOOL}")});
    let skill = json!({"uri": format!("skill://{SKILL}/SKILL.md")});
    let task = json!({"taskId": first.running});
    let completion = json!({
        "ref": {"type": "ref/prompt", "name": TOOL},
        "argument": {"name": "topic", "value": "to"},
    });
    vec![
        ("ping", json!({})),
        ("server/discover", json!({})),
        ("tools/list", json!({})),
        ("tools/list", json!({"cursor": "MQp0b29scwpxdWFydHo"})),
        ("logging/setLevel", json!({"level": "debug"})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("resources/read", uri.clone()),
        ("resources/read", skill.clone()),
        ("resources/read", json!({"uri": format!("skill://{SKILL}/references/diorite.md")})),
        ("resources/read", json!({"uri": format!("skill://../{SKILL}/SKILL.md")})),
        ("resources/read", json!({"uri": format!("ui://{TOOLSET}/artifacts/page.html")})),
        ("resources/directory/read", skill.clone()),
        ("skills/list", json!({})),
        ("skills/get", skill),
        ("resources/subscribe", uri.clone()),
        ("resources/unsubscribe", uri),
        ("prompts/list", json!({})),
        ("prompts/get", tool),
        ("prompts/get", json!({"name": SKILL})),
        ("completion/complete", completion),
        ("tasks/list", json!({})),
        ("tasks/get", task.clone()),
        ("tasks/result", task.clone()),
        ("tasks/cancel", task),
        ("notifications/cancelled", json!({"requestId": 1})),
        ("notifications/progress", json!({"progressToken": 1, "progress": 1})),
        ("notifications/roots/list_changed", json!({})),
    ]
}

/// Calls of built-in tools that name things of the first tenant.
fn calls(probe: &Probe<'_>) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("search_tools", json!({"query": "quartz"})),
        ("search_tools", json!({"query": "opal-second-description", "limit": 20})),
        ("search_tools", json!({"query": TOOL, "bundle": BUNDLE})),
        ("mcp_call", json!({"server": MCP_SERVER, "tool": TOOL})),
        ("list_files", json!({})),
        ("read_file", json!({"path": "note.txt"})),
        ("read_file", json!({"path": "../workspace/note.txt"})),
        ("append_file", json!({"path": "../workspace/note.txt", "content": "x"})),
        ("write_file", json!({"path": "note.txt", "content": "x"})),
    ];
    let home = probe.server.home.path().display();
    for command in
        [format!("cat {home}/skills/*/*"), format!("ls -R {home}"), format!("cat {home}/workspace/*")]
    {
        calls.push(("bash", json!({"script": command})));
        calls.push(("exec", json!({"command": command})));
    }
    for pipeline in [PIPELINE, &probe.first.pipeline] {
        calls.push(("retrieval_pipeline", json!({"pipeline": pipeline, "query": "quartz"})));
    }
    for reference in references(probe.first) {
        calls.push(("describe_tool", json!({"tool": reference})));
        calls.push(("call_tool", json!({"name": reference, "arguments": {}})));
        calls.push(("delete_tool", json!({"tool": reference})));
    }
    calls.push(("create_tool", json!({"definition": function_tool(TOOL, "echo")})));
    calls
}

fn references(first: &FirstTenant) -> Vec<String> {
    let qualified = format!("{BUNDLE}:{TOOL}");
    let skill = format!("{SKILL}:{SKILL}");
    let names = [&first.tool, TOOL, &qualified, &skill, HTTP_TOOL, GATED_TOOL, CONFIRMED_TOOL, BROKEN_TOOL];
    names.map(str::to_owned).into()
}

/// Sends every method in both versions of the protocol, and fails if a response reveals anything of the first tenant.
pub(super) async fn walk(probe: &Probe<'_>) {
    let session = Session::open(probe.server, "/mcp", &probe.token, "2025-11-25").await;
    for (method, params) in methods(probe.first) {
        ask(probe, &session, method, params).await;
    }
    check_coverage(probe).await;
    for reference in references(probe.first) {
        let params = json!({"name": reference, "arguments": {}});
        for answer in ask(probe, &session, "tools/call", params).await {
            let message = answer.last();
            let failed = message["error"].is_object() || message["result"]["isError"] == true;
            assert!(failed, "{reference}: {message}");
        }
    }
    for (tool, arguments) in calls(probe) {
        ask(probe, &session, "tools/call", json!({"name": tool, "arguments": arguments})).await;
    }
    use_bundle_and_session(probe).await;
}

/// Sends a method in both versions of the protocol.
async fn ask(probe: &Probe<'_>, session: &Session<'_>, method: &str, params: Value) -> [Answer; 2] {
    let message = if method.starts_with("notifications/") {
        json!({"jsonrpc": "2.0", "method": method, "params": params})
    } else {
        json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params})
    };
    let old = send(session.request(&message)).await;
    let new = send(modern(probe.server, "/mcp", &probe.token, method, params)).await;
    for answer in [&old, &new] {
        probe.first.check_secrets(&message.to_string(), &answer.text);
        assert!(answer.status < 500, "{message}: {answer:?}");
    }
    [old, new]
}

/// Fails if the server has a capability or a built-in tool that the walk does not know.
async fn check_coverage(probe: &Probe<'_>) {
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let answer = send(request(probe.server, "/mcp", &probe.token, &message)).await;
    probe.first.check_secrets("", &answer.text);
    let capabilities = answer.last()["result"]["capabilities"].clone();
    for name in capabilities.as_object().unwrap().keys() {
        assert!(
            CAPABILITIES.contains(&name.as_str()),
            "the MCP capability `{name}` is not covered: check its methods in `methods` in \
             `tests/it/isolation/mcp.rs`, and add it to `CAPABILITIES`"
        );
    }
    for name in capabilities["extensions"].as_object().unwrap().keys() {
        assert!(EXTENSIONS.contains(&name.as_str()), "the MCP extension `{name}` is not covered");
    }
    let calls = calls(probe);
    let (_, list) = probe.server.get("/api/tools/builtins/templates").await;
    for tool in list["data"]["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        assert!(
            PLAIN_TOOLS.contains(&name) || calls.iter().any(|(called, _)| *called == name),
            "the built-in tool `{name}` is not covered: add a call that names things of another tenant to `calls` in \
             `tests/it/isolation/mcp.rs`, or add it to `PLAIN_TOOLS` if it has no access to any"
        );
    }
    let listed = send(modern(probe.server, "/mcp", &probe.token, "tools/list", json!({}))).await.last();
    let is_built_in = |name: &&str| list.to_string().contains(&format!("\"{name}\""));
    let others: Vec<_> = names(&listed).into_iter().filter(|name| !is_built_in(name)).collect();
    assert!(others.is_empty(), "listed besides the built-in tools: {others:?}");
}

/// The view of a bundle, and the session, of the first tenant.
async fn use_bundle_and_session(probe: &Probe<'_>) {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let mut texts = Vec::new();
    for slug in [BUNDLE, "absent-name"] {
        let path = format!("/mcp/bundles/{slug}");
        let answer = send(modern(probe.server, &path, &probe.token, "tools/list", json!({}))).await;
        assert_eq!(answer.status, 404, "{answer:?}");
        let body: Value = serde_json::from_str(&answer.text).unwrap();
        texts.push(body["error"].to_string().replace(slug, "…"));
    }
    assert_eq!(texts[0], texts[1]);
    let other = Session::open(probe.server, "/mcp", &probe.server.token, "2025-11-25").await;
    let stolen = request(probe.server, "/mcp", &probe.token, &message).header("mcp-session-id", &other.id);
    let answer = send(stolen).await;
    assert_eq!(answer.status, 404, "{answer:?}");
    probe.first.check_secrets("", &answer.text);
}

/// Fails if a client is notified of a change of another tenant's tools.
pub(super) async fn listen(probe: &Probe<'_>) {
    let Probe { server, first, token, .. } = probe;
    let own = Session::open(server, "/mcp", &server.token, "2025-11-25").await;
    let other = Session::open(server, "/mcp", token, "2025-11-25").await;
    let mut own = own.listen().send().await.unwrap();
    let mut other = other.listen().send().await.unwrap();
    let disabled = json!({"enabled": false});
    assert_eq!(server.patch(&format!("/api/tools/{}", first.tool), disabled).await.0, 200);
    let notification = "notifications/tools/list_changed";
    read_until(&mut own, notification).await;
    // Notifications of one change are sent at the same time.
    let early = tokio::time::timeout(Duration::from_millis(500), read_until(&mut other, notification)).await;
    assert!(early.is_err(), "notified of a change of another tenant: {early:?}");
    let tool = function_tool("own-tool", "echo");
    let (status, answer) = tenants::with(server, token, Method::POST, "/api/tools", tool).await;
    assert_eq!(status, 201, "{answer}");
    read_until(&mut other, notification).await;
}
