//! Runs of agents through HTTP: waiting, watching, cancelling, limits.

use std::time::Duration;

use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::http::header;
use haft_testkit::upstream::axum::response::IntoResponse as _;
use haft_testkit::upstream::axum::routing::post;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, token, with_helper};
use crate::harness::{Server, code, function_tool, poll};
use crate::tenants::with;

/// Reads server-sent events: the name and the data of each.
pub(crate) async fn events(request: reqwest::RequestBuilder) -> Vec<(String, Value)> {
    let response = request.header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(response.status(), 200);
    parse_events(&response.text().await.unwrap())
}

fn parse_events(text: &str) -> Vec<(String, Value)> {
    let field = |event: &str, name: &str| {
        event.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim().to_owned()
    };
    let events = text.split("\n\n").filter(|event| event.contains("event:"));
    events
        .map(|event| (field(event, "event:"), serde_json::from_str(&field(event, "data:")).unwrap()))
        .collect()
}

pub(crate) fn names(events: &[(String, Value)]) -> Vec<&str> {
    let mut names: Vec<_> = events.iter().map(|(name, _)| name.as_str()).collect();
    names.dedup();
    names
}

#[tokio::test]
async fn a_run_is_waited_for_or_watched() {
    let server = with_helper().await;
    let path = "/api/agents/helper/runs";
    let (status, answer) = server.post(path, json!({"input": "double it"})).await;
    let run = &answer["data"];
    assert_eq!(
        (status, &run["status"], &run["output"]),
        (200, &json!("success"), &json!("It is 42.")),
        "{answer}"
    );
    assert_eq!((&run["usage"]["answers"], &run["usage"]["calls"]), (&json!(2), &json!(1)), "{run}");

    let streamed =
        events(server.request(Method::POST, path).body(json!({"input": "double it"}).to_string())).await;
    // An answer that is complete before the stream is read comes without its parts.
    let names_of_steps: Vec<_> = names(&streamed).into_iter().filter(|name| *name != "text_delta").collect();
    assert_eq!(names_of_steps, ["start", "answer", "tool_use", "answer", "end"], "{streamed:?}");
    let (_, last) = streamed.last().unwrap();
    assert_eq!((&last["status"], &last["output"]), (&json!("success"), &json!("It is 42.")));

    let (status, answer) = server.post(&format!("{path}?async=true"), json!({"input": "double it"})).await;
    assert_eq!(status, 202, "{answer}");
    let id = answer["data"]["id"].as_str().unwrap().to_owned();
    // Whoever comes late sees the same, from the steps.
    poll(async || {
        (server.get(&format!("/api/runs/{id}")).await.1["data"]["status"] == "success").then_some(())
    })
    .await;
    let watched = events(server.request(Method::GET, &format!("/api/runs/{id}/events"))).await;
    assert_eq!(names(&watched), ["start", "answer", "tool_use", "answer", "end"], "{watched:?}");
    let (_, steps) = server.get(&format!("/api/runs/{id}/steps")).await;
    let kinds: Vec<_> =
        steps["data"]["steps"].as_array().unwrap().iter().map(|step| step["body"]["type"].clone()).collect();
    assert_eq!(kinds, ["answer", "result", "answer"], "{steps}");
    let (_, rest) = server.get(&format!("/api/runs/{id}/steps?after=2")).await;
    assert_eq!(rest["data"]["steps"].as_array().unwrap().len(), 1, "{rest}");

    let (_, calls) = server.get("/api/calls?surface=agent").await;
    assert_eq!(calls["data"]["total"], 3, "{calls}");
    let (_, list) = server.get("/api/runs?agent=helper&status=success&page_size=2").await;
    assert_eq!(list["data"]["runs"].as_array().unwrap().len(), 2, "{list}");
    assert!(list["data"]["next_page_token"].is_string(), "{list}");
}

#[tokio::test]
async fn a_run_is_cancelled_with_its_call() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {calls: [{tool: gate}]}]";
    create(&server, scripted("waiter", &["gate"], script)).await;
    let (_, answer) = server.post("/api/agents/waiter/runs?async=true", json!({"input": "go"})).await;
    let id = answer["data"]["id"].as_str().unwrap().to_owned();
    server.gate.entered(1).await;
    let (status, answer) = server.post(&format!("/api/runs/{id}/cancel"), json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let run = ended(&server, &id).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("cancelled"), &json!("cancelled")), "{run}");
    let (_, calls) = server.get("/api/calls?tool=gate").await;
    assert_eq!(calls["data"]["calls"][0]["status"], "cancelled", "{calls}");
    let (status, answer) = server.post(&format!("/api/runs/{id}/cancel"), json!({})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
}

pub(crate) async fn ended(server: &Server, id: &str) -> Value {
    poll(async || {
        let run = server.get(&format!("/api/runs/{id}")).await.1["data"].clone();
        ["success", "error", "cancelled"].contains(&run["status"].as_str().unwrap()).then_some(run)
    })
    .await
}

#[tokio::test]
async fn budgets_and_failing_models_end_a_run_with_a_reason() {
    let server = with_helper().await;
    let forever = "turns: [{calls: [{tool: double, arguments: {n: 1}}], repeat: 1000}]";
    let mut limited = scripted("limited", &["double"], forever);
    limited["budget"] = json!({"calls": 3});
    create(&server, limited).await;
    let (status, answer) = server.post("/api/agents/limited/runs", json!({"input": "go"})).await;
    assert_eq!((status, &answer["data"]["status"]), (200, &json!("error")), "{answer}");
    assert_eq!(answer["data"]["usage"]["calls"], 3, "{answer}");

    create(&server, scripted("broken", &[], "turns: [{error: auth}]")).await;
    let (_, answer) = server.post("/api/agents/broken/runs", json!({"input": "go"})).await;
    let error = answer["data"]["error"]["message"].as_str().unwrap();
    assert!(error.contains("API key"), "{answer}");
    let mut keyless = scripted("keyless", &[], "");
    keyless["model"] = json!("claude-sonnet-5");
    let (_, created) = server.post("/api/agents", keyless).await;
    let message = "no key for anthropic: store it with `haft secret set ANTHROPIC_API_KEY`";
    assert_eq!(created["data"]["warnings"][0]["message"], message, "{created}");
    let (_, answer) = server.post("/api/agents/keyless/runs", json!({"input": "go"})).await;
    assert_eq!(answer["data"]["error"]["message"], message, "{answer}");

    for (body, expected) in [
        (json!({}), "input"),
        (json!({"input": ""}), "input"),
        (json!({"input": 3}), "`input` must be"),
        (json!({"input": "x", "webhook": {"url": "https://a.example"}}), "async=true"),
        (json!({"input": "x", "nonsense": 1}), "nonsense"),
    ] {
        let (status, answer) = server.post("/api/agents/helper/runs", body.clone()).await;
        assert_eq!(status, 400, "{body}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(expected), "{answer}");
    }
}

#[tokio::test]
async fn callers_see_their_own_runs_and_a_revoked_token_ends_a_run() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {calls: [{tool: gate}]}]";
    create(&server, scripted("waiter", &["gate"], script)).await;
    let (_, answer) = server.post("/api/tokens", json!({"name": "ci", "role": "caller"})).await;
    let (caller, token_id) =
        (answer["data"]["token"].as_str().unwrap(), answer["data"]["id"].as_str().unwrap());
    let other = token(&server, "caller").await;
    let body = json!({"input": "go"});
    let (_, answer) = with(&server, caller, Method::POST, "/api/agents/waiter/runs?async=true", body).await;
    let id = answer["data"]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/runs/{id}");
    assert_eq!(with(&server, caller, Method::GET, &path, Value::Null).await.0, 200);
    assert_eq!(with(&server, &other, Method::GET, &path, Value::Null).await.0, 404);
    server.gate.entered(1).await;
    server.delete(&format!("/api/tokens/{token_id}")).await;
    server.gate.open();
    let run = ended(&server, &id).await;
    assert_eq!((&run["status"], &run["error"]["code"]), (&json!("error"), &json!("unauthorized")), "{run}");
}

#[tokio::test]
async fn a_run_goes_on_after_its_token_was_rotated() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {calls: [{tool: gate}]}]";
    create(&server, scripted("waiter", &["gate"], script)).await;
    let (_, made) = server.post("/api/tokens", json!({"name": "ci", "role": "caller"})).await;
    let caller = made["data"]["token"].as_str().unwrap();
    let body = json!({"input": "go"});
    let (_, answer) = with(&server, caller, Method::POST, "/api/agents/waiter/runs?async=true", body).await;
    server.gate.entered(1).await;
    let rotate = format!("/api/tokens/{}/rotate", made["data"]["id"].as_str().unwrap());
    let (status, rotated) = server.post(&rotate, json!({"grace": "1s"})).await;
    assert_eq!(status, 200, "{rotated}");
    poll(async || (with(&server, caller, Method::GET, "/api/tools", json!({})).await.0 == 401).then_some(()))
        .await;
    server.gate.open();
    let run = ended(&server, answer["data"]["id"].as_str().unwrap()).await;
    assert_eq!((&run["status"], &run["output"]), (&json!("success"), &json!("done")), "{run}");
}

#[tokio::test]
async fn production_runs_the_published_revision() {
    let server = with_helper().await;
    let body = json!({"input": "double it"});
    let (status, answer) = server.post("/api/agents/helper/runs?mode=production", body.clone()).await;
    assert_eq!((status, code(&answer)), (409, "not_published"), "{answer}");
    server.post("/api/tools/double/publish", json!({})).await;
    server.post("/api/agents/helper/publish", json!({})).await;
    server.put("/api/agents/helper", scripted("helper", &["double"], "turns: [{text: new}]")).await;
    let (_, answer) = server.post("/api/agents/helper/runs?mode=production", body.clone()).await;
    assert_eq!(
        (&answer["data"]["output"], &answer["data"]["agent_revision"]),
        (&json!("It is 42."), &json!(1))
    );
    assert_eq!(server.post("/api/agents/helper/runs", body).await.1["data"]["output"], "new");
}

/// A model server in OpenAI's format: it calls the first tool once, then says what the tool returned.
pub(crate) async fn openai() -> Upstream {
    let answer = |body: String| async move {
        let request: Value = serde_json::from_str(&body).unwrap();
        let messages = request["messages"].as_array().unwrap();
        let result = messages.iter().rev().find(|message| message["role"] == "tool");
        let delta = match result {
            Some(result) => {
                json!({"role": "assistant", "content": format!("The tool said {}.", result["content"].as_str().unwrap())})
            }
            None => {
                json!({"role": "assistant", "tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function":
                {"name": request["tools"][0]["function"]["name"], "arguments": "{\"n\": 21}"}}]})
            }
        };
        let reason = if result.is_some() { "stop" } else { "tool_calls" };
        let chunk = |delta: Value, reason: Value| {
            json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m",
                   "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})
        };
        let usage = json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}});
        let chunks = [chunk(delta, Value::Null), chunk(json!({}), json!(reason)), usage];
        let lines = chunks.map(|chunk| format!("data: {chunk}\n\n")).concat();
        ([(header::CONTENT_TYPE, "text/event-stream")], format!("{lines}data: [DONE]\n\n")).into_response()
    };
    Upstream::serve(Router::new().route("/v1/chat/completions", post(answer))).await.unwrap()
}

#[tokio::test]
async fn a_private_model_server_needs_the_platforms_permission() {
    let upstream = openai().await;
    let definition = |slug: &str| {
        json!({"slug": slug, "tools": ["double"],
               "model": {"name": "m", "base_url": upstream.url("/v1"), "credential": "MODEL_KEY"}})
    };
    let listed = upstream.url("");
    let server = Server::start_with(|settings| {
        settings.egress.private_hosts = Vec::new();
        settings.models.private_urls = vec![listed];
        settings.models.prices.insert("m*".to_owned(), haft_server::settings::Prices::new(1.0, 2.0));
    })
    .await;
    server.create(function_tool("double", "double")).await;
    create(&server, definition("local")).await;
    let (_, answer) = server.post("/api/agents/local/runs", json!({"input": "go"})).await;
    assert!(answer["data"]["error"]["message"].as_str().unwrap().contains("`MODEL_KEY`"), "{answer}");
    server.put("/api/credentials/MODEL_KEY", json!({"value": "sk-123456789"})).await;
    let (_, answer) = server.post("/api/agents/local/runs", json!({"input": "go"})).await;
    let run = &answer["data"];
    assert_eq!(
        (&run["status"], &run["output"]),
        (&json!("success"), &json!("The tool said 42.")),
        "{answer}"
    );
    assert_eq!(
        (&run["usage"]["input_tokens"], &run["usage"]["output_tokens"]),
        (&json!(20), &json!(10)),
        "{run}"
    );
    assert!((run["usage"]["cost"].as_f64().unwrap() - 0.00004).abs() < 1e-9, "{run}");
    assert_eq!(upstream.seen()[0].headers["authorization"], "Bearer sk-123456789");

    let refusing = Server::start_with(|settings| settings.egress.private_hosts = Vec::new()).await;
    refusing.create(function_tool("double", "double")).await;
    refusing.put("/api/credentials/MODEL_KEY", json!({"value": "sk-123456789"})).await;
    create(&refusing, definition("local")).await;
    let (_, answer) = refusing.post("/api/agents/local/runs", json!({"input": "go"})).await;
    let message = answer["data"]["error"]["message"].as_str().unwrap();
    assert!(message.contains("egress guard") && message.contains("`models.private_urls`"), "{message}");
    assert!(!message.contains("private_hosts"), "{message}");
}

#[tokio::test]
async fn a_policy_rule_can_name_agents() {
    let server = with_helper().await;
    let rules = json!({"rules": [{"name": "no-doubling", "match": {"agents": ["helper"], "tools": ["double"]}, "when": "args.n > 20", "effect": "deny"}]});
    let (status, answer) = server.put("/api/policy", rules).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(server.invoke("double", json!({"n": 21})).await.1["value"], 42, "people are not agents");
    let (_, answer) = server.post("/api/agents/helper/runs", json!({"input": "double it"})).await;
    let id = answer["data"]["id"].as_str().unwrap();
    let (_, steps) = server.get(&format!("/api/runs/{id}/steps")).await;
    assert_eq!(steps["data"]["steps"][1]["body"]["error"]["code"], "policy_denied", "{steps}");
}

/// A watcher that joins a long run late reads the missed events from the stored steps.
#[tokio::test]
async fn a_late_watcher_of_a_long_run_gets_its_beginning() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    // More words than a feed keeps events.
    let words = "a ".repeat(9_000);
    let script =
        format!("turns: [{{when: {{tool: gate}}, text: done}}, {{text: {words}, calls: [{{tool: gate}}]}}]");
    create(&server, scripted("talker", &["gate"], &script)).await;
    let (_, run) = server.post("/api/agents/talker/runs?async=true", json!({"input": "go"})).await;
    server.gate.entered(1).await;
    let path = format!("/api/runs/{}/events", run["data"]["id"].as_str().unwrap());
    let mut response = server.request(Method::GET, &path).send().await.unwrap();
    let mut text = String::new();
    while let Some(chunk) = response.chunk().await.unwrap() {
        text.push_str(std::str::from_utf8(&chunk).unwrap());
        if text.contains("event: answer") {
            server.gate.open();
        }
    }
    let watched = parse_events(&text);
    let names: Vec<_> = names(&watched).into_iter().filter(|name| *name != "text_delta").collect();
    assert_eq!(names, ["start", "answer", "tool_use", "answer", "end"], "{names:?}");
}

#[tokio::test]
async fn runs_wait_for_room() {
    let server = Server::start_with(|settings| settings.runs.max_running = 1).await;
    server.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {calls: [{tool: gate}]}]";
    create(&server, scripted("waiter", &["gate"], script)).await;
    create(&server, scripted("quick", &[], "turns: [{text: quick}]")).await;
    let (_, first) = server.post("/api/agents/waiter/runs?async=true", json!({"input": "go"})).await;
    server.gate.entered(1).await;
    let (_, second) = server.post("/api/agents/quick/runs?async=true", json!({"input": "go"})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let id = second["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/api/runs/{id}")).await.1["data"]["status"], "pending");
    server.gate.open();
    assert_eq!(ended(&server, &id).await["output"], "quick");
    assert_eq!(ended(&server, first["data"]["id"].as_str().unwrap()).await["output"], "done");
}

#[tokio::test]
async fn a_stopped_server_leaves_its_runs_to_the_next() {
    let server =
        Server::start_with(|settings| settings.server.shutdown_grace = Duration::from_millis(300)).await;
    server.create(function_tool("double", "double")).await;
    let script = r#"
turns:
  - when: {tool: double}
    text: "It is {{result}}."
  - text: "slowly, very slowly, with many words so that it takes its time to say it all"
    pace: 200ms
    calls: [{tool: double, arguments: {n: 4}}]
"#;
    create(&server, scripted("slow", &["double"], script)).await;
    let (_, answer) = server.post("/api/agents/slow/runs?async=true", json!({"input": "go"})).await;
    let id = answer["data"]["id"].as_str().unwrap().to_owned();
    poll(async || {
        (server.get(&format!("/api/runs/{id}")).await.1["data"]["status"] == "running").then_some(())
    })
    .await;
    let server = server.restart().await;
    assert_eq!(ended(&server, &id).await["output"], "It is 8.");
}

#[tokio::test]
async fn two_nodes_watch_and_cancel_each_others_runs() {
    let database = crate::postgres::database().await;
    let one = crate::postgres::on(&database.url).await;
    one.create(function_tool("gate", "gate")).await;
    let script = "turns: [{when: {tool: gate}, text: done}, {text: Working., calls: [{tool: gate}]}]";
    create(&one, scripted("waiter", &["gate"], script)).await;
    let mut ids = Vec::new();
    for count in 1..=2 {
        let (_, answer) = one.post("/api/agents/waiter/runs?async=true", json!({"input": "go"})).await;
        ids.push(answer["data"]["id"].as_str().unwrap().to_owned());
        one.gate.entered(count).await;
    }
    let other = crate::postgres::on(&database.url).await;
    let watching = {
        let request = other.request(Method::GET, &format!("/api/runs/{}/events", ids[0]));
        tokio::spawn(events(request))
    };
    let (status, answer) = other.post(&format!("/api/runs/{}/cancel", ids[1]), json!({})).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(ended(&other, &ids[1]).await["status"], "cancelled");
    one.gate.open();
    let watched = watching.await.unwrap();
    assert_eq!(names(&watched), ["start", "answer", "tool_use", "answer", "end"], "{watched:?}");
    assert_eq!(watched.last().unwrap().1["output"], "done");
    // What one node stored the other one reads.
    assert_eq!(other.get(&format!("/api/runs/{}", ids[0])).await.1["data"]["output"], "done");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the API does not list the webhooks of single runs")]
async fn a_run_that_does_not_start_leaves_no_webhook() {
    let mut server = with_helper().await;
    let body = json!({"input": "hi", "webhook": {"url": "http://127.0.0.1:9/"}});
    let (status, answer) =
        server.post("/api/agents/helper/runs?async=true&mode=production", body.clone()).await;
    assert_eq!((status, code(&answer)), (409, "not_published"), "{answer}");
    let (status, answer) = server.post("/api/agents/helper/runs?async=true", body).await;
    assert_eq!(status, 202, "{answer}");
    server.halt().await;
    let script = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('SELECT id FROM webhooks').fetchall())";
    let stored = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(server.home.path().join("haft.db"))
        .output()
        .unwrap();
    let id = answer["data"]["webhook"]["id"].as_str().unwrap();
    assert_eq!(String::from_utf8_lossy(&stored.stdout).trim(), format!("[('{id}',)]"), "{stored:?}");
}
