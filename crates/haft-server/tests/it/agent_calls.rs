//! `agent_call`: agents as tools.

use haft_core::runnable::Mode;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, with_helper};
use crate::harness::{Server, code, function_tool};
use crate::runs::ended;
use crate::tenants::{tenant, with};

/// Creates a tool that runs an agent.
async fn agent_tool(server: &Server, name: &str, target: &str, timeout_ms: u64) {
    server
        .create(json!({
            "name": name, "description": "Asks another agent",
            "implementation": {"type": "agent_call", "target_agent_slug": target},
            "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}},
            "execution": {"timeout_ms": timeout_ms},
        }))
        .await;
}

#[tokio::test]
async fn an_agent_is_a_tool() {
    let server = with_helper().await;
    agent_tool(&server, "ask_helper", "helper", 60_000).await;
    let (status, answer) = server.invoke("ask_helper", json!({"input": "double it"})).await;
    let value = &answer["value"];
    assert_eq!(
        (status, &value["status"], &value["output"]),
        (200, &json!("success"), &json!("It is 42.")),
        "{answer}"
    );
    assert_eq!((&value["mode"], &value["target_agent_slug"]), (&json!("sync"), &json!("helper")), "{value}");
    // The state that the run left: what its tools returned. The answer is not repeated.
    let state = &value["context"];
    assert_eq!((&state["context"], &state["last_agent_output"]), (&json!(42), &Value::Null), "{value}");
    let outputs = &state["tool_outputs"];
    assert_eq!(
        (&outputs[0]["name"], &outputs[0]["output"], outputs.as_array().unwrap().len()),
        (&json!("double"), &json!(42), 1),
        "{value}"
    );
    assert!(value.get("error").is_none(), "{value}");
    let run = server.get(&format!("/api/runs/{}", value["run_id"].as_str().unwrap())).await.1;
    assert_eq!(
        (&run["data"]["surface"], &run["data"]["parent_call_id"]),
        (&json!("agent_call"), &answer["call_id"])
    );
    let (_, calls) =
        server.get(&format!("/api/calls?parent_id={}", answer["call_id"].as_str().unwrap())).await;
    assert_eq!(
        calls["data"]["total"], 2,
        "the start and the calls inside the run belong to the call: {calls}"
    );

    let script = r#"
turns:
  - when: {tool: ask_helper}
    text: "Helper says: {{result.output}}"
  - calls: [{tool: ask_helper, arguments: {input: double it}}]
"#;
    create(&server, scripted("boss", &["ask_helper", "double"], script)).await;
    let (_, answer) = server.post("/api/agents/boss/runs", json!({"input": "go"})).await;
    let run = &answer["data"];
    assert_eq!(run["output"], "Helper says: It is 42.", "{run}");
    // The run above counts what the run below used.
    assert_eq!((&run["usage"]["answers"], &run["usage"]["calls"]), (&json!(4), &json!(2)), "{run}");
    let (_, below) = server.get(&format!("/api/runs?parent_id={}", run["id"].as_str().unwrap())).await;
    assert_eq!(below["data"]["runs"][0]["agent"], "helper", "{below}");
}

#[tokio::test]
async fn failures_and_timeouts_are_results() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    create(&server, scripted("broken", &[], "turns: [{error: auth}]")).await;
    create(&server, scripted("slow", &["gate"], "turns: [{calls: [{tool: gate}]}]")).await;
    agent_tool(&server, "ask_broken", "broken", 60_000).await;
    agent_tool(&server, "ask_slow", "slow", 500).await;
    let (_, answer) = server.invoke("ask_broken", json!({"input": "x"})).await;
    assert_eq!((&answer["ok"], &answer["value"]["status"]), (&json!(true), &json!("error")), "{answer}");
    assert!(answer["value"]["error"]["message"].as_str().unwrap().contains("API key"), "{answer}");
    let (_, answer) = server.invoke("ask_slow", json!({"input": "x"})).await;
    let value = &answer["value"];
    assert_eq!(
        (&value["status"], &value["error"]["code"]),
        (&json!("timeout"), &json!("timeout")),
        "{answer}"
    );
    let run = ended(&server, value["run_id"].as_str().unwrap()).await;
    assert_eq!(run["status"], "cancelled", "the run does not go on: {run}");
    let (_, answer) = server.invoke("ask_slow", json!({})).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("missing `input`"), "{answer}");
}

#[tokio::test]
async fn circles_and_depth_are_bounded() {
    let server = Server::start().await;
    for target in ["a", "b"] {
        agent_tool(&server, &format!("ask_{target}"), target, 60_000).await;
    }
    for (agent, target) in [("a", "b"), ("b", "a")] {
        let script = format!(
            "turns: [{{when: {{tool: ask_{target}}}, text: '{{{{result}}}}'}}, {{calls: [{{tool: ask_{target}, arguments: {{input: x}}}}]}}]"
        );
        create(&server, scripted(agent, &["ask_a", "ask_b"], &script)).await;
    }
    let (_, answer) = server.post("/api/agents/a/runs", json!({"input": "go"})).await;
    let output = answer["data"]["output"].as_str().unwrap();
    assert!(output.contains("agents call each other in a circle: a → b → a"), "{answer}");

    for level in 0..8 {
        let (agent, tool) = (format!("level{level}"), format!("ask_level{}", level + 1));
        agent_tool(&server, &tool, &format!("level{}", level + 1), 60_000).await;
        let script = format!(
            "turns: [{{when: {{tool: {tool}}}, text: '{{{{result}}}}'}}, {{calls: [{{tool: {tool}, arguments: {{input: x}}}}]}}]"
        );
        create(&server, scripted(&agent, &["ask_level*"], &script)).await;
    }
    let (_, answer) = server.post("/api/agents/level0/runs", json!({"input": "go"})).await;
    let output = answer["data"]["output"].as_str().unwrap();
    assert!(output.contains("agent depth limit (5) exceeded"), "{answer}");
    let (_, runs) = server.get("/api/runs?page_size=100").await;
    let deep = runs["data"]["runs"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["agent"].as_str().unwrap().starts_with("level"));
    assert_eq!(deep.count(), 5, "{runs}");
}

#[tokio::test]
async fn agents_of_other_tenants_do_not_exist() {
    let server = with_helper().await;
    let other = tenant(&server, "acme").await;
    let tool = json!({
        "name": "ask", "description": "d", "implementation": {"type": "agent_call", "target_agent_slug": "helper"},
        "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}},
    });
    let (status, answer) = with(&server, &other, Method::POST, "/api/tools", tool).await;
    assert_eq!((status, &answer["data"]["ready"]), (201, &json!(false)), "{answer}");
    let body = json!({"args": {"input": "x"}});
    let (status, answer) = with(&server, &other, Method::POST, "/api/tools/ask/invoke", body).await;
    assert_eq!((status, code(&answer)), (409, "not_ready"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("agent `helper` not found"), "{answer}");
}

#[tokio::test]
async fn a_tool_is_ready_while_its_agent_exists_and_published_after_it() {
    let server = Server::start().await;
    agent_tool(&server, "ask", "later", 60_000).await;
    let reason = "`implementation.target_agent_slug`: agent `later` not found";
    let shown = async || server.get("/api/tools/ask").await.1["data"].clone();
    let tool = shown().await;
    assert_eq!((&tool["ready"], &tool["error"]), (&json!(false), &json!(reason)), "{tool}");
    let publish = async || {
        let (status, answer) = server.post("/api/tools/ask/publish", json!({})).await;
        (status, answer["error"]["message"].as_str().unwrap_or_default().to_owned())
    };
    let (status, message) = publish().await;
    assert_eq!((status, message.ends_with(reason)), (409, true), "{message}");

    // A draft is enough for debug mode, but not for a published tool.
    let agent = create(&server, scripted("later", &[], "turns: [{text: here}]")).await;
    assert_eq!(shown().await["ready"], true);
    assert_eq!(server.invoke("ask", json!({"input": "x"})).await.1["value"]["output"], "here");
    let (status, message) = publish().await;
    assert_eq!((status, message.contains("agent `later` is not published")), (409, true), "{message}");
    server.post("/api/agents/later/publish", json!({})).await;
    assert_eq!(publish().await.0, 200);

    server.delete("/api/agents/later?force=true").await;
    assert_eq!(shown().await["ready"], false);
    create(&server, scripted("later", &[], "turns: [{text: again}]")).await;
    assert_eq!(shown().await["ready"], true, "another agent of the name does, too");
    let by_id = json!({"name": "by_id", "description": "d", "implementation": {"type": "agent_call", "target_agent_id": agent["id"]}});
    let tool = server.create(by_id).await;
    assert_eq!(tool["ready"], false, "{tool}");
    assert!(
        tool["error"].as_str().unwrap().starts_with("`implementation.target_agent_id`: agent `"),
        "{tool}"
    );
}

#[tokio::test]
async fn in_production_a_tool_is_not_ready_before_its_agent_is_published() {
    let server = Server::start_with(|settings| settings.mode = Mode::Production).await;
    create(&server, scripted("later", &[], "turns: [{text: here}]")).await;
    agent_tool(&server, "ask", "later", 60_000).await;
    let (_, tool) = server.get("/api/tools/ask").await;
    assert_eq!(tool["data"]["ready"], false, "{tool}");
    assert!(tool["data"]["error"].as_str().unwrap().contains("agent `later` is not published"), "{tool}");
    let body = json!({"args": {"input": "x"}});
    let (status, answer) = server.post("/api/tools/ask/invoke?mode=debug", body).await;
    assert_eq!((status, &answer["value"]["output"]), (200, &json!("here")), "drafts can be tried: {answer}");
    server.post("/api/agents/later/publish", json!({})).await;
    assert_eq!(server.get("/api/tools/ask").await.1["data"]["ready"], true);
}

#[tokio::test]
async fn a_budget_holds_for_the_runs_below_and_cancelling_reaches_them() {
    let server = with_helper().await;
    server.create(function_tool("gate", "gate")).await;
    agent_tool(&server, "ask_worker", "worker", 60_000).await;
    let work = "turns: [{calls: [{tool: double, arguments: {n: 1}}], repeat: 100}]";
    create(&server, scripted("worker", &["double"], work)).await;
    let script = "turns: [{when: {tool: ask_worker}, text: '{{result.status}}'}, {calls: [{tool: ask_worker, arguments: {input: x}}]}]";
    let mut boss = scripted("boss", &["ask_worker", "double", "gate"], script);
    boss["budget"] = json!({"calls": 5});
    create(&server, boss).await;
    let (_, answer) = server.post("/api/agents/boss/runs", json!({"input": "go"})).await;
    assert!(answer["data"]["usage"]["calls"].as_u64().unwrap() <= 6, "{answer}");
    let (_, calls) = server.get("/api/calls?tool=double").await;
    assert!(calls["data"]["total"].as_u64().unwrap() <= 5, "{calls}");

    server.put("/api/agents/worker", scripted("worker", &["gate"], "turns: [{calls: [{tool: gate}]}]")).await;
    let (_, answer) = server.post("/api/agents/boss/runs?async=true", json!({"input": "go"})).await;
    let id = answer["data"]["id"].as_str().unwrap();
    server.gate.entered(1).await;
    server.post(&format!("/api/runs/{id}/cancel"), json!({})).await;
    assert_eq!(ended(&server, id).await["status"], "cancelled");
    let (_, below) = server.get(&format!("/api/runs?parent_id={id}")).await;
    let below = below["data"]["runs"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&server, &below).await["status"], "cancelled");
}

#[tokio::test]
async fn a_run_below_that_waits_for_approval_says_so() {
    let server = Server::start().await;
    let mut tool = function_tool("deploy", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    create(&server, scripted("deployer", &["deploy"], "turns: [{calls: [{tool: deploy}]}]")).await;
    agent_tool(&server, "ask_deployer", "deployer", 60_000).await;
    let (_, answer) = server.invoke("ask_deployer", json!({"input": "x"})).await;
    let value: &Value = &answer["value"];
    assert_eq!(value["status"], "awaiting_approval", "{answer}");
    assert!(value["approvals"][0]["approval_id"].is_string(), "{answer}");
}
