//! Rules about surfaces and agents hold for what is done on their behalf, however deep.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, with_helper};
use crate::harness::{Server, code, function_tool, poll, send};
use crate::mcp::client;
use crate::mcp_servers::{PROGRAM, connected};

/// Adds `book`, the `steps` tool `plan` that calls it, the agent `b` that calls it, and the tool `ask_b`.
async fn travel() -> Server {
    let server = Server::start().await;
    server.create(function_tool("book", "echo")).await;
    server
        .create(json!({
            "name": "plan", "description": "Books in steps",
            "implementation": {"type": "steps", "steps": [{"id": "first", "tool": "book", "args": {"x": 1}}]},
            "input_schema": {"type": "object"},
        }))
        .await;
    let script = "turns: [{when: {tool: book}, text: done}, {calls: [{tool: book, arguments: {x: 1}}]}]";
    create(&server, scripted("b", &["book"], script)).await;
    agent_tool(&server, "ask_b", "b", json!({})).await;
    server
}

async fn agent_tool(server: &Server, name: &str, target: &str, execution: Value) {
    server
        .create(json!({
            "name": name, "description": "Asks another agent",
            "implementation": {"type": "agent_call", "target_agent_slug": target},
            "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}},
            "execution": execution,
        }))
        .await;
}

async fn rule(server: &Server, rule: Value) {
    let mut rule = rule;
    rule["name"] = json!("restricted");
    let (status, answer) = server.put("/api/policy", json!({ "rules": [rule] })).await;
    assert_eq!(status, 200, "{answer}");
}

/// Returns how many calls of a tool ended with this status.
async fn calls(server: &Server, tool: &str, status: &str) -> u64 {
    let (_, answer) = server.get(&format!("/api/calls?tool={tool}&status={status}")).await;
    answer["data"]["total"].as_u64().unwrap()
}

async fn over_mcp(server: &Server, tool: &str, args: Value) -> Value {
    let params = json!({"name": tool, "arguments": args});
    let request = client::modern(server, "/mcp", &server.token, "tools/call", params);
    client::send(request).await.last()["result"].clone()
}

#[tokio::test]
async fn a_rule_on_a_surface_holds_for_steps_and_agents_below_it() {
    let server = travel().await;
    // The second rule depends on the arguments, so that the tool is offered to the agent all the same.
    for when in [None, Some("args.x == 1")] {
        let matching = json!({"tools": ["book"], "surfaces": ["mcp"]});
        rule(&server, json!({"match": matching, "when": when, "effect": "deny"})).await;
        let before = calls(&server, "book", "success").await;
        let denied = over_mcp(&server, "plan", json!({})).await;
        assert_eq!(denied["isError"], true, "{denied}");
        assert!(denied["content"][0]["text"].as_str().unwrap().contains("not allowed"), "{denied}");
        over_mcp(&server, "ask_b", json!({"input": "go"})).await;
        assert_eq!(calls(&server, "book", "success").await, before, "nothing ran");

        let (status, answer) = server.invoke("plan", json!({})).await;
        assert_eq!((status, &answer["ok"]), (200, &json!(true)), "{answer}");
        let (_, answer) = server.invoke("ask_b", json!({"input": "go"})).await;
        assert_eq!(answer["value"]["output"], "done", "{answer}");
        assert_eq!(calls(&server, "book", "success").await, before + 2);
    }
}

#[tokio::test]
async fn a_rule_on_a_surface_holds_for_what_tools_call_by_name() {
    let server = Server::start_whole(|_| {}).await;
    server.create(function_tool("book", "double")).await;
    let body = json!({"id": "test", "command": "python3", "args": [PROGRAM]});
    server.post("/api/mcp-servers", body).await;
    connected(&server, "test").await;
    for (caller, args, tool) in [
        ("function_call", json!({"function_name": "double", "args": {"n": 1}}), "book"),
        ("mcp_call", json!({"server": "test", "tool": "echo", "arguments": {"text": "x"}}), "test:echo"),
    ] {
        let matching = json!({"tools": [tool], "surfaces": ["mcp"]});
        rule(&server, json!({"match": matching, "effect": "deny"})).await;
        let denied = over_mcp(&server, caller, args.clone()).await;
        assert_eq!(denied["isError"], true, "{denied}");
        assert!(denied["content"][0]["text"].as_str().unwrap().contains("not allowed"), "{denied}");
        assert_eq!(calls(&server, tool, "success").await, 0, "{tool}");
        let (_, answer) = server.invoke(caller, args).await;
        assert_eq!(answer["ok"], true, "{caller}: {answer}");
        assert_eq!(calls(&server, tool, "success").await, 1, "{tool}");
    }
}

#[tokio::test]
async fn a_rule_on_an_agent_holds_for_the_agents_that_it_calls() {
    let server = travel().await;
    let script =
        "turns: [{when: {tool: ask_b}, text: done}, {calls: [{tool: ask_b, arguments: {input: x}}]}]";
    create(&server, scripted("a", &["ask_b", "book"], script)).await;
    for when in [None, Some("args.x == 1")] {
        let matching = json!({"tools": ["book"], "agents": ["a"]});
        rule(&server, json!({"match": matching, "when": when, "effect": "deny"})).await;
        let before = calls(&server, "book", "success").await;
        let (_, answer) = server.post("/api/agents/a/runs", json!({"input": "go"})).await;
        assert_eq!(answer["data"]["status"], "success", "{answer}");
        assert_eq!(calls(&server, "book", "success").await, before, "nothing ran");
        let (_, answer) = server.post("/api/agents/b/runs", json!({"input": "go"})).await;
        assert_eq!(answer["data"]["output"], "done", "{answer}");
        assert_eq!(calls(&server, "book", "success").await, before + 1);
    }
    assert_eq!(calls(&server, "book", "error").await, 1, "the denial that depends on arguments is recorded");
    let explained =
        |above: Value| json!({"tool": "book", "args": {"x": 1}, "as": {"agent": "b", "agents_above": above}});
    let (_, answer) = server.post("/api/policy/explain", explained(json!(["a"]))).await;
    assert_eq!(answer["data"]["rule"], "restricted", "{answer}");
    let (_, answer) = server.post("/api/policy/explain", explained(json!([]))).await;
    assert_eq!(answer["data"]["effect"], "allow", "{answer}");
}

#[tokio::test]
async fn what_is_above_a_call_that_waits_survives_a_restart() {
    let server = travel().await;
    rule(&server, json!({"match": {"tools": ["book"]}, "effect": "approve"})).await;
    let (_, answer) = server.post("/api/agents/b/runs?async=true", json!({"input": "go"})).await;
    let path = format!("/api/runs/{}", answer["data"]["id"].as_str().unwrap());
    poll(async || (server.get(&path).await.1["data"]["status"] == "awaiting_approval").then_some(())).await;
    let (_, list) = server.get("/api/approvals?status=waiting").await;
    let approval = list["data"]["approvals"][0]["id"].as_str().unwrap().to_owned();
    let server = server.restart().await;
    // The call itself came through the surface `agent`.
    rule(&server, json!({"match": {"tools": ["book"], "surfaces": ["rest"]}, "effect": "deny"})).await;
    let (status, answer) = server.post(&format!("/api/approvals/{approval}/approve"), json!({})).await;
    assert_eq!((status, code(&answer)), (403, "policy_denied"), "{answer}");
    assert_eq!(calls(&server, "book", "success").await, 0);
}

#[tokio::test]
async fn a_denied_caller_learns_nothing_about_the_arguments() {
    let server = Server::start().await;
    let mut tool = function_tool("pay", "echo");
    tool["input_schema"] =
        json!({"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]});
    server.create(tool).await;
    let (_, token) = server.post("/api/tokens", json!({"name": "ci", "role": "caller"})).await;
    let token = token["data"]["token"].as_str().unwrap();
    let wrong = async || {
        let request = server.bare(Method::POST, "/api/tools/pay/invoke").bearer_auth(token);
        send(request.body(json!({"args": {"amount": "much"}}).to_string())).await
    };
    rule(&server, json!({"match": {"tools": ["pay"], "tokens": ["ci"]}, "effect": "deny"})).await;
    let (status, answer) = wrong().await;
    assert_eq!((status, code(&answer)), (403, "policy_denied"), "{answer}");
    assert!(!answer.to_string().contains("amount"), "{answer}");
    let (_, recorded) = server.get("/api/audit?kind=calls&rule=restricted").await;
    assert_eq!(recorded["data"]["total"], 1, "{recorded}");
    // What depends on the arguments is decided when they are known to be valid.
    for harmless in [
        json!({"match": {"tools": ["pay"]}, "when": "args.amount > 5", "effect": "deny"}),
        json!({"match": {"tools": ["pay"], "tokens": ["other"]}, "effect": "deny"}),
    ] {
        rule(&server, harmless).await;
        let (status, answer) = wrong().await;
        assert_eq!((status, code(&answer)), (400, "invalid_arguments"), "{answer}");
    }
}

#[tokio::test]
async fn runs_side_by_side_share_the_budget_of_the_run_above() {
    let server = with_helper().await;
    agent_tool(&server, "ask_worker", "worker", json!({"is_pure": true, "max_concurrency": 4})).await;
    let work = "turns: [{calls: [{tool: double, arguments: {n: 1}}], repeat: 100}]";
    create(&server, scripted("worker", &["double"], work)).await;
    let call = "{tool: ask_worker, arguments: {input: x}}";
    let script = format!(
        "turns: [{{when: {{tool: ask_worker}}, text: done}}, {{calls: [{call}, {call}, {call}, {call}]}}]"
    );
    let mut boss = scripted("boss", &["ask_worker", "double"], &script);
    boss["budget"] = json!({"calls": 12});
    boss["tool_execution"] = json!("parallel_safe");
    create(&server, boss).await;
    let (_, answer) = server.post("/api/agents/boss/runs", json!({"input": "go"})).await;
    let run = answer["data"]["id"].as_str().unwrap();
    let (_, below) = server.get(&format!("/api/runs?parent_id={run}")).await;
    assert_eq!(below["data"]["runs"].as_array().unwrap().len(), 4, "{below}");
    // Each would have 9 or more for itself; a run may be one call ahead of what the others know.
    let made = server.get("/api/calls?tool=double").await.1["data"]["total"].as_u64().unwrap();
    assert!((8..=16).contains(&made), "{made} calls");
}
