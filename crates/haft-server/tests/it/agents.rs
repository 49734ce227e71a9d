//! Agents: creating, checking and publishing them, their revisions, and who may do what.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::tenants::{tenant, with};

/// The definition of an agent with a scripted model.
pub(crate) fn scripted(slug: &str, tools: &[&str], script: &str) -> Value {
    json!({
        "slug": slug, "name": slug, "instructions": "Answer.", "tools": tools,
        "model": {"name": "scripted/test", "script": script},
    })
}

/// A script that calls `double` once and says its result.
pub(crate) const DOUBLE: &str = r#"
turns:
  - when: {tool: double}
    text: "It is {{result}}."
  - when: {user: 'double'}
    text: One moment.
    calls: [{tool: double, arguments: {n: 21}}]
  - text: Hello!
"#;

/// Creates an agent and returns it.
pub(crate) async fn create(server: &Server, definition: Value) -> Value {
    let (status, answer) = server.post("/api/agents", definition).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"].clone()
}

/// Starts a server with the tool `double` and the agent `helper` that has it.
pub(crate) async fn with_helper() -> Server {
    let server = Server::start().await;
    server.create(function_tool("double", "double")).await;
    create(&server, scripted("helper", &["double"], DOUBLE)).await;
    server
}

/// Creates a token with a role and returns it.
pub(crate) async fn token(server: &Server, role: &str) -> String {
    let (status, answer) = server.post("/api/tokens", json!({"name": role, "role": role})).await;
    assert_eq!(status, 201, "{answer}");
    answer["data"]["token"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn an_agent_is_created_changed_and_restored() {
    let server = with_helper().await;
    let (status, answer) = server.post("/api/agents", scripted("helper", &[], DOUBLE)).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));

    let changed = json!({"name": "Helper", "model": "scripted/other", "instructions": "Be brief.", "tools": ["double"]});
    let put = |revision: &'static str| {
        server
            .request(Method::PUT, "/api/agents/helper")
            .header("if-match", revision)
            .body(changed.to_string())
    };
    let (status, answer) = send(put("7")).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
    let (status, answer) = send(put("1")).await;
    assert_eq!((status, &answer["data"]["revision"]), (200, &json!(2)), "{answer}");
    assert_eq!(answer["data"]["slug"], "helper", "a definition without a slug keeps it");
    let id = answer["data"]["id"].as_str().unwrap();

    let (_, list) = server.get(&format!("/api/agents/{id}/revisions")).await;
    assert_eq!(list["data"]["total"], 2, "{list}");
    let (_, first) = server.get("/api/agents/helper/revisions/1").await;
    assert_eq!(first["data"]["definition"]["instructions"], "Answer.", "{first}");
    let (status, restored) = server.post("/api/agents/helper/revisions/1/restore", json!({})).await;
    assert_eq!((status, &restored["data"]["revision"]), (200, &json!(3)), "{restored}");
    assert_eq!(restored["data"]["instructions"], "Answer.");

    let (_, list) = server.get("/api/agents?q=HELP").await;
    assert_eq!((&list["data"]["total"], &list["data"]["agents"][0]["slug"]), (&json!(1), &json!("helper")));
    assert_eq!(server.get("/api/agents?status=published").await.1["data"]["total"], 0);
    assert_eq!(server.delete("/api/agents/helper").await.0, 200);
    assert_eq!(server.get("/api/agents/helper").await.0, 404);
}

#[tokio::test]
async fn tools_that_are_missing_disabled_or_unpublished_are_named() {
    let server = with_helper().await;
    let (status, answer) = server.post("/api/agents", scripted("a", &["doubel", "x:*"], DOUBLE)).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    for expected in ["no tool matches `doubel`; did you mean `double`?", "no tool matches `x:*`"] {
        assert!(message.contains(expected), "{message}");
    }

    let (status, answer) = server.post("/api/agents", scripted("a", &["a b"], DOUBLE)).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");

    let (status, answer) = server.post("/api/agents/helper/publish", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`user-created:double` is not published"), "{message}");
    let mut strict = scripted("strict", &["double"], DOUBLE);
    strict["require_published"] = json!(true);
    let (status, answer) = server.post("/api/agents", strict.clone()).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");

    server.post("/api/tools/double/publish", json!({})).await;
    create(&server, strict).await;
    let (status, answer) = server.post("/api/agents/helper/publish", json!({})).await;
    assert_eq!((status, &answer["data"]["published_revision"]), (200, &json!(1)), "{answer}");
    server.patch("/api/tools/double", json!({"enabled": false})).await;
    let (status, answer) = server.post("/api/agents/helper/publish", json!({})).await;
    assert_eq!(status, 409, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("is disabled"), "{answer}");

    let (_, checked) = server.post("/api/agents/check", scripted("a", &["nothing"], DOUBLE)).await;
    assert_eq!(checked["data"]["valid"], false, "{checked}");
    let broken = json!({"slug": "a", "model": {"name": "scripted/x", "script": "turns: 3"}});
    let (_, checked) = server.post("/api/agents/check", broken).await;
    assert_eq!(checked["data"]["errors"][0]["field"], "model", "{checked}");
}

#[tokio::test]
async fn the_tools_of_an_agent_are_those_that_it_could_call() {
    let server = with_helper().await;
    server.create(function_tool("echo", "echo")).await;
    server.create(function_tool("other", "echo")).await;
    let mut definition = scripted("wide", &["*", "!other"], DOUBLE);
    definition["exclude_tools"] = json!(["clock", "hello"]);
    create(&server, definition).await;
    let (_, tools) = server.get("/api/agents/wide/tools").await;
    let names: Vec<_> =
        tools["data"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert_eq!(names, ["double", "echo"], "{tools}");
    assert!(tools["data"]["tokens"].as_u64().unwrap() > 0);
    server.delete("/api/tools/double?force=true").await;
    let (_, tools) = server.get("/api/agents/helper/tools").await;
    assert_eq!(tools["data"]["missing"], json!(["double"]), "{tools}");
}

#[tokio::test]
async fn roles_and_tenants_bound_who_uses_agents() {
    let server = with_helper().await;
    let (viewer, caller, editor) =
        (token(&server, "viewer").await, token(&server, "caller").await, token(&server, "editor").await);
    let other = tenant(&server, "acme").await;
    let definition = scripted("mine", &["double"], DOUBLE);
    for (who, method, path, body, expected) in [
        (&viewer, Method::GET, "/api/agents/helper", Value::Null, 200),
        (&viewer, Method::POST, "/api/agents/helper/runs", json!({"input": "hi"}), 403),
        (&caller, Method::POST, "/api/agents/helper/runs", json!({"input": "hi"}), 200),
        (&caller, Method::POST, "/api/agents", definition.clone(), 403),
        (&caller, Method::PATCH, "/api/agents/helper", json!({"enabled": false}), 403),
        (&editor, Method::POST, "/api/agents", definition, 201),
        (&other, Method::GET, "/api/agents/helper", Value::Null, 404),
        (&other, Method::POST, "/api/agents/helper/runs", json!({"input": "hi"}), 404),
        (&editor, Method::PATCH, "/api/agents/helper", json!({"enabled": false}), 200),
        (&caller, Method::POST, "/api/agents/helper/runs", json!({"input": "hi"}), 409),
    ] {
        let (status, answer) = with(&server, who, method.clone(), path, body).await;
        assert_eq!(status, expected, "{method} {path}: {answer}");
    }
    let (_, models) = server.get("/api/models").await;
    let providers = models["data"]["providers"].as_array().unwrap();
    let anthropic = providers.iter().find(|provider| provider["name"] == "anthropic").unwrap();
    assert_eq!((&anthropic["requires_key"], &anthropic["has_key"]), (&json!(true), &json!(false)));
    assert_eq!(models["data"]["models"][0]["name"], "scripted/test", "{models}");
}

#[tokio::test]
async fn variables_that_every_run_must_set_are_warnings() {
    let server = Server::start().await;
    let mut definition = scripted("poet", &[], "turns: [{text: ok}]");
    definition["instructions"] = json!("Write about {{topic}} in {{language}}{{if tone}}, {{tone}}{{end}}.");
    definition["variables"] = json!({"language": "English"});
    let expected = |name: &str| {
        let message = format!(
            "`instructions` uses `{{{{{name}}}}}`, which has no default in `variables`: every run must set it"
        );
        json!({"field": "instructions", "code": "missing_variable", "message": message})
    };
    let expected = json!([expected("tone"), expected("topic")]);
    let (_, checked) = server.post("/api/agents/check", definition.clone()).await;
    assert_eq!(
        (&checked["data"]["valid"], &checked["data"]["warnings"]),
        (&json!(true), &expected),
        "{checked}"
    );
    assert_eq!(create(&server, definition.clone()).await["warnings"], expected);
    let (status, published) = server.post("/api/agents/poet/publish", json!({})).await;
    assert_eq!((status, &published["data"]["warnings"]), (200, &expected), "{published}");
    let run = |variables: Value| json!({"input": "go", "variables": variables});
    let (_, answer) = server.post("/api/agents/poet/runs", run(json!({"topic": "rain", "tone": ""}))).await;
    assert_eq!(answer["data"]["status"], "success", "{answer}");

    // What no run could render is an error.
    definition["instructions"] = json!("{{if tone}}");
    let (status, answer) = server.put("/api/agents/poet", definition).await;
    assert_eq!((status, code(&answer)), (400, "invalid_definition"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("`instructions`"), "{answer}");
}

#[tokio::test]
async fn an_agent_is_ready_while_its_tools_are() {
    let server = with_helper().await;
    server.create(function_tool("echo", "echo")).await;
    create(&server, scripted("wide", &["user-created:*", "!missing"], DOUBLE)).await;
    let ready = async |agent: &str| {
        let shown = server.get(&format!("/api/agents/{agent}")).await.1["data"].clone();
        let (_, list) = server.get(&format!("/api/agents?q={agent}")).await;
        assert_eq!(list["data"]["agents"][0]["ready"], shown["ready"], "{list}");
        assert_eq!(shown["ready"], shown["error"].is_null(), "{shown}");
        shown["error"].as_str().unwrap_or("ready").to_owned()
    };
    assert_eq!(ready("helper").await, "ready");
    server.patch("/api/tools/double", json!({"enabled": false})).await;
    assert_eq!(ready("helper").await, "`user-created:double` is disabled");
    assert_eq!(ready("wide").await, "ready", "a pattern needs one tool that can run");
    server.patch("/api/tools/echo", json!({"enabled": false})).await;
    assert_eq!(ready("wide").await, "`user-created:double` is disabled");
    server.delete("/api/tools/double?force=true").await;
    assert_eq!(ready("helper").await, "no tool matches `double`");
    server.create(function_tool("double", "double")).await;
    assert_eq!(ready("helper").await, "ready", "it follows the tool");

    server.post("/api/tools/double/publish", json!({})).await;
    let mut strict = scripted("strict", &["double"], DOUBLE);
    strict["require_published"] = json!(true);
    create(&server, strict).await;
    assert_eq!(ready("strict").await, "ready");
    server.delete("/api/tools/double?force=true").await;
    server.create(function_tool("double", "double")).await;
    assert_eq!(ready("strict").await, "`user-created:double` is not published");
    assert_eq!(ready("helper").await, "ready");
}

#[tokio::test]
async fn broken_files_of_agents_are_listed() {
    let server = Server::start().await;
    let folder = server.home.path().join("agents");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("broken.yaml"), "model: [1\n").unwrap();
    let file = poll(async || {
        let (_, list) = server.get("/api/agents").await;
        list["data"]["broken_files"].get(0).cloned()
    })
    .await;
    assert_eq!(file["path"], "agents/broken.yaml", "{file}");
    assert!(file["error"].as_str().unwrap().contains("line "), "{file}");
    let (_, doctor) = server.get("/api/doctor").await;
    let check = doctor["data"]["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "definition `agents/broken.yaml`");
    assert_eq!(check.unwrap()["status"], "error", "{doctor}");
    let other = tenant(&server, "acme").await;
    let (_, list) = with(&server, &other, Method::GET, "/api/agents", Value::Null).await;
    assert_eq!(list["data"]["broken_files"], json!([]), "files belong to the default tenant");

    std::fs::write(folder.join("broken.yaml"), "model: scripted/x\n").unwrap();
    poll(async || {
        let (_, list) = server.get("/api/agents").await;
        (list["data"]["broken_files"] == json!([]) && list["data"]["total"] == 1).then_some(())
    })
    .await;
}
