//! Starting a run and querying a pipeline are calls: the role, allow-lists, policy rules, rates and the record hold on
//! every surface.

use haft_core::runnable::Mode;
use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, with_helper};
use crate::harness::{Server, code, function_tool, send};
use crate::socket::Socket;
use crate::tenants::with;
use crate::waiting::token;

/// The surfaces that start a run.
const STARTS: [&str; 5] = ["rest", "chat", "ws", "openai", "agent_call"];
/// The surfaces that query a pipeline.
const QUERIES: [&str; 3] = ["rest", "rag_retrieval", "retrieval_pipeline"];

/// A server with the agent `helper` and the tool `ask_helper` that runs it.
async fn with_agent() -> Server {
    let server = with_helper().await;
    ask_tool(&server, "ask_helper", "helper").await;
    server
}

async fn ask_tool(server: &Server, name: &str, target: &str) {
    server
        .create(json!({
            "name": name, "description": "Asks another agent",
            "implementation": {"type": "agent_call", "target_agent_slug": target},
            "input_schema": {"type": "object", "properties": {"input": {"type": "string"}}},
        }))
        .await;
}

/// A server with the pipeline `handbook` and the tool `ask_handbook` that queries it.
async fn with_pipeline(mode: Mode) -> Server {
    let server = Server::start_whole(|settings| settings.mode = mode).await;
    let (status, answer) = server.post("/api/pipelines", json!({"slug": "handbook"})).await;
    assert_eq!(status, 201, "{answer}");
    server
        .create(json!({
            "name": "ask_handbook", "description": "Searches the handbook",
            "implementation": {"type": "rag_retrieval", "pipeline_id": "handbook"},
            "input_schema": {"type": "object"},
        }))
        .await;
    server
}

/// Runs `helper` through a surface; returns whether it answered, and the response as text.
async fn run(server: &Server, token: &str, surface: &str) -> (bool, String) {
    let post = async |path: &str, body: Value| with(server, token, Method::POST, path, body).await;
    let (answered, answer) = match surface {
        "rest" => {
            let (status, answer) = post("/api/agents/helper/runs", json!({"input": "hello"})).await;
            (status == 200, answer)
        }
        "chat" => {
            let (status, chat) = post("/api/chats", json!({"agent": "helper"})).await;
            if status == 201 {
                let path = format!("/api/chats/{}/messages", chat["data"]["id"].as_str().unwrap());
                let (status, answer) = post(&path, json!({"content": "hello"})).await;
                (status == 201, answer)
            } else {
                (false, chat)
            }
        }
        "ws" => {
            let mut socket = Socket::open(server, token).await;
            socket.send(json!({"type": "message", "content": "hello", "agent": "helper"})).await;
            loop {
                let frame = socket.next().await.unwrap();
                if frame["type"] == "end" || frame["type"] == "error" {
                    break (frame["type"] == "end", frame);
                }
            }
        }
        "openai" => {
            let messages = json!([{"role": "user", "content": "hello"}]);
            let body = json!({"model": "helper", "messages": messages});
            let (status, answer) = post("/v1/chat/completions", body).await;
            (status == 200, answer)
        }
        _ => {
            let (_, answer) = post("/api/tools/ask_helper/invoke", json!({"args": {"input": "hello"}})).await;
            (answer["ok"] == true, answer)
        }
    };
    (answered, answer.to_string())
}

/// Queries `handbook` through a surface; returns whether it was found, and the response as text.
async fn query(server: &Server, token: &str, surface: &str) -> (bool, String) {
    let (path, body) = match surface {
        "rest" => ("/api/pipelines/handbook/query", json!({"query": "badger"})),
        "rag_retrieval" => ("/api/tools/ask_handbook/invoke", json!({"args": {"query": "badger"}})),
        _ => {
            let args = json!({"pipeline": "handbook", "query": "badger"});
            ("/api/tools/retrieval_pipeline/invoke", json!({ "args": args }))
        }
    };
    let (status, answer) = with(server, token, Method::POST, path, body).await;
    (status == 200 && answer["ok"] != json!(false), answer.to_string())
}

async fn rules(server: &Server, rules: Value) {
    let (status, answer) = server.put("/api/policy", json!({ "rules": rules })).await;
    assert_eq!(status, 200, "{answer}");
}

/// Returns the recorded calls of an agent or a pipeline, newest first.
async fn records(server: &Server, name: &str) -> Vec<Value> {
    let (_, answer) = server.get("/api/calls?page_size=100").await;
    let calls = answer["data"]["calls"].as_array().unwrap_or_else(|| panic!("{answer}"));
    calls.iter().filter(|call| call["tool"] == name).cloned().collect()
}

async fn limited(server: &Server, name: &str, tools: &[&str]) -> String {
    token(server, json!({"name": name, "role": "caller", "tools": tools})).await
}

#[tokio::test]
async fn rules_and_records_hold_for_every_start_of_a_run() {
    let server = with_agent().await;
    for (number, surface) in STARTS.into_iter().enumerate() {
        let rule = json!({"name": "restricted", "match": {"tools": ["agents:helper"]}, "effect": "deny"});
        rules(&server, json!([rule])).await;
        let (answered, text) = run(&server, &server.token, surface).await;
        assert!(!answered && text.contains("restricted"), "{surface}: {text}");
        let denied = records(&server, "agents:helper").await;
        assert_eq!(denied.len(), 2 * number + 1, "{surface}");
        let record = &denied[0];
        assert_eq!(
            (&record["surface"], &record["status"], &record["error"]["code"], &record["decision"]["rule"]),
            (&json!(surface), &json!("error"), &json!("policy_denied"), &json!("restricted")),
            "{record}"
        );
        let runs = server.get("/api/runs?page_size=100").await.1["data"]["runs"].as_array().unwrap().len();
        assert_eq!(runs, number, "{surface}: nothing was started");

        rules(&server, json!([])).await;
        let (answered, text) = run(&server, &server.token, surface).await;
        assert!(answered, "{surface}: {text}");
        let record = &records(&server, "agents:helper").await[0];
        assert_eq!(
            (&record["surface"], &record["status"], &record["args"]["messages"]),
            (&json!(surface), &json!("success"), &json!(1)),
            "{record}"
        );
        let run = record["value"]["run_id"].as_str().unwrap();
        assert_eq!(server.get(&format!("/api/runs/{run}")).await.0, 200, "{surface}");
    }
}

#[tokio::test]
async fn a_rule_names_the_agent_that_is_started() {
    let server = with_agent().await;
    for (rule, expected) in [
        (json!({"match": {"agents": ["helper"]}, "effect": "deny"}), Some("policy_denied")),
        (
            json!({"match": {"surfaces": ["rest"], "tools": ["agents:*"]}, "effect": "deny"}),
            Some("policy_denied"),
        ),
        (json!({"match": {"tools": ["agents:*"]}, "when": "args.messages > 1", "effect": "deny"}), None),
        (json!({"match": {"tools": ["helper"]}, "effect": "deny"}), None),
        (json!({"match": {"agents": ["other"]}, "effect": "deny"}), None),
        // What the agent calls needs approval, not its start.
        (json!({"match": {"agents": ["helper"]}, "effect": "approve"}), None),
    ] {
        let mut named = rule.clone();
        named["name"] = json!("r");
        rules(&server, json!([named])).await;
        let (status, answer) = server.post("/api/agents/helper/runs", json!({"input": "hello"})).await;
        let found = answer["error"]["code"].as_str();
        assert_eq!((status == 200, found), (expected.is_none(), expected), "{rule}: {answer}");
    }
    let approve = json!({"name": "r", "match": {"tools": ["agents:helper"]}, "effect": "approve"});
    rules(&server, json!([approve])).await;
    let (status, answer) = server.post("/api/agents/helper/runs", json!({"input": "hello"})).await;
    assert_eq!((status, code(&answer)), (403, "policy_denied"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`r` requires approval, but the start of an agent cannot wait"), "{message}");
    let (_, answer) = server.post("/api/policy/explain", json!({"tool": "agents:helper"})).await;
    let explained = &answer["data"];
    assert_eq!(
        (&explained["effect"], &explained["rule"]),
        (&json!("deny"), &json!("built-in:approval")),
        "{answer}"
    );
}

#[tokio::test]
async fn the_rate_of_a_token_counts_every_start_of_a_run() {
    let server = with_agent().await;
    for surface in STARTS {
        // A tool that runs an agent counts, too.
        let calls = if surface == "agent_call" { 2 } else { 1 };
        let rate = json!({"calls": calls, "per": "1h"});
        let limited = token(&server, json!({"name": surface, "role": "caller", "rate_limit": rate})).await;
        let (answered, text) = run(&server, &limited, surface).await;
        assert!(answered, "{surface}: {text}");
        let (answered, text) = run(&server, &limited, surface).await;
        assert!(!answered && text.contains("rate_limit"), "{surface}: {text}");
    }
}

#[tokio::test]
async fn the_role_and_the_allow_list_hold_for_every_start_of_a_run() {
    let server = with_agent().await;
    let viewer = token(&server, json!({"name": "viewer", "role": "viewer"})).await;
    for surface in ["rest", "openai"] {
        let (answered, text) = run(&server, &viewer, surface).await;
        assert!(!answered && text.contains("role `caller` required"), "{surface}: {text}");
    }
    let without = limited(&server, "without", &["ask_helper", "double"]).await;
    let allowed = limited(&server, "with", &["ask_helper", "double", "agents:helper"]).await;
    for surface in STARTS {
        let (answered, text) = run(&server, &without, surface).await;
        // A caller does not see the agent; a tool names it.
        let expected = match surface {
            "agent_call" => "agents:helper",
            "openai" => "`helper` does not exist",
            _ => "`helper` not found",
        };
        assert!(!answered && text.contains(expected), "{surface}: {text}");
        let (answered, text) = run(&server, &allowed, surface).await;
        assert!(answered, "{surface}: {text}");
    }
}

#[tokio::test]
async fn the_conversation_of_a_run_is_limited() {
    let server = with_helper().await;
    let long = "x".repeat(4 * 1024 * 1024);
    let (status, answer) = server.post("/api/agents/helper/runs", json!({ "input": long })).await;
    assert_eq!((status, code(&answer)), (413, "too_large"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("the limit of 4194304 bytes (4 MiB)"), "{message}");
    assert_eq!(server.get("/api/runs").await.1["data"]["runs"], json!([]));
}

#[tokio::test]
async fn a_child_agent_has_no_tool_that_its_parent_does_not_have() {
    let server = with_agent().await;
    let script = "turns: [{when: {tool: ask_helper}, text: done}, \
                  {calls: [{tool: ask_helper, arguments: {input: double it}}]}]";
    let calls = async || server.get("/api/calls?tool=double&status=success").await.1["data"]["total"].clone();
    let excluding = {
        let mut agent = scripted("excluding", &["*"], script);
        agent["exclude_tools"] = json!(["double"]);
        agent
    };
    for boss in [scripted("boss", &["ask_helper"], script), excluding] {
        let slug = boss["slug"].as_str().unwrap().to_owned();
        create(&server, boss).await;
        let (_, answer) = server.post(&format!("/api/agents/{slug}/runs"), json!({"input": "go"})).await;
        assert_eq!(answer["data"]["status"], "success", "{slug}: {answer}");
        assert_eq!(calls().await, 0, "{slug}");
    }
    // A child of a child has what all agents above it have.
    ask_tool(&server, "ask_middle", "middle").await;
    let ask = |tool: &str| {
        format!(
            "turns: [{{when: {{tool: {tool}}}, text: done}}, {{calls: [{{tool: {tool}, arguments: {{input: double it}}}}]}}]"
        )
    };
    create(&server, scripted("middle", &["ask_helper", "double"], &ask("ask_helper"))).await;
    for (slug, tools, expected) in [
        ("narrow", &["ask_middle", "ask_helper"][..], 0),
        ("wide", &["ask_middle", "ask_helper", "double"], 1),
    ] {
        create(&server, scripted(slug, tools, &ask("ask_middle"))).await;
        let (_, answer) = server.post(&format!("/api/agents/{slug}/runs"), json!({"input": "go"})).await;
        assert_eq!(answer["data"]["status"], "success", "{slug}: {answer}");
        assert_eq!(calls().await, expected, "{slug}");
    }
    let (_, answer) = server.post("/api/agents/helper/runs", json!({"input": "double it"})).await;
    assert_eq!(answer["data"]["output"], "It is 42.", "alone it has its own tools: {answer}");
}

#[tokio::test]
async fn rules_and_records_hold_for_every_query_of_a_pipeline() {
    let server = with_pipeline(Mode::Debug).await;
    for (number, surface) in QUERIES.into_iter().enumerate() {
        let rule = json!({"name": "restricted", "match": {"tools": ["pipelines:hand*"]}, "effect": "deny"});
        rules(&server, json!([rule])).await;
        let (found, text) = query(&server, &server.token, surface).await;
        assert!(!found && text.contains("policy_denied"), "{surface}: {text}");
        rules(&server, json!([])).await;
        let (found, text) = query(&server, &server.token, surface).await;
        assert!(found, "{surface}: {text}");
        let records = records(&server, "pipelines:handbook").await;
        assert_eq!(records.len(), 2 * (number + 1), "{surface}");
        assert_eq!(
            (&records[0]["surface"], &records[0]["status"], &records[0]["value"]["hits"]),
            (&json!(surface), &json!("success"), &json!(0)),
            "{surface}"
        );
        assert_eq!(
            (&records[1]["surface"], &records[1]["error"]["code"], &records[1]["args"]["query"]),
            (&json!(surface), &json!("policy_denied"), &json!("badger")),
            "{surface}"
        );
    }
    // A rule on a surface holds for what a tool does there.
    let rule =
        json!({"name": "r", "match": {"tools": ["pipelines:*"], "surfaces": ["rest"]}, "effect": "deny"});
    rules(&server, json!([rule])).await;
    for surface in QUERIES {
        assert!(!query(&server, &server.token, surface).await.0, "{surface}");
    }
}

#[tokio::test]
async fn rates_and_allow_lists_hold_for_every_query_of_a_pipeline() {
    let server = with_pipeline(Mode::Debug).await;
    let viewer = token(&server, json!({"name": "viewer", "role": "viewer"})).await;
    let (found, text) = query(&server, &viewer, "rest").await;
    assert!(!found && text.contains("role `caller` required"), "{text}");
    for surface in QUERIES {
        let rate = json!({"calls": if surface == "rest" { 1 } else { 2 }, "per": "1h"});
        let limited = token(&server, json!({"name": surface, "role": "caller", "rate_limit": rate})).await;
        assert!(query(&server, &limited, surface).await.0, "{surface}");
        let (found, text) = query(&server, &limited, surface).await;
        assert!(!found && text.contains("rate_limit"), "{surface}: {text}");
    }
    let tools = ["ask_handbook", "retrieval_pipeline"];
    let without = limited(&server, "without", &tools).await;
    let allowed = limited(&server, "with", &[tools[0], tools[1], "pipelines:handbook"]).await;
    for surface in QUERIES {
        let (found, text) = query(&server, &without, surface).await;
        assert!(!found && (surface == "rest" || text.contains("pipelines:handbook")), "{surface}: {text}");
        let (found, text) = query(&server, &allowed, surface).await;
        assert!(found, "{surface}: {text}");
    }
}

#[tokio::test]
async fn in_production_callers_query_published_pipelines_only() {
    let server = with_pipeline(Mode::Production).await;
    let caller = token(&server, json!({"name": "caller", "role": "caller"})).await;
    let ask = async |token: &str| {
        let body = json!({"query": "badger"});
        with(&server, token, Method::POST, "/api/pipelines/handbook/query", body).await
    };
    let (status, answer) = ask(&caller).await;
    assert_eq!((status, code(&answer)), (409, "not_published"), "{answer}");
    assert_eq!(ask(&server.token).await.0, 200, "editors try drafts");
    server.post("/api/pipelines/handbook/publish", json!({})).await;
    assert_eq!(ask(&caller).await.0, 200);
}

#[tokio::test]
async fn a_client_that_says_it_is_the_command_line_is_one_of_the_rest_api() {
    let server = Server::start().await;
    let mut tool = function_tool("book", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    let caller = token(&server, json!({"name": "ci", "role": "caller"})).await;
    let invoke = async |surface: Option<&str>| {
        let request = server.bare(Method::POST, "/api/tools/book/invoke").bearer_auth(&caller);
        let request = match surface {
            Some(surface) => request.header("x-haft-surface", surface),
            None => request,
        };
        let (_, answer) = send(request.body(json!({"args": {}}).to_string())).await;
        if answer["ok"] == true { "ok".to_owned() } else { code(&answer).to_owned() }
    };
    for (rule, cli, rest) in [
        (
            json!({"match": {"surfaces": ["cli"]}, "effect": "allow"}),
            "approval_required",
            "approval_required",
        ),
        (json!({"when": "surface == 'cli'", "effect": "allow"}), "approval_required", "approval_required"),
        (json!({"match": {"surfaces": ["rest"]}, "effect": "allow"}), "ok", "ok"),
        (json!({"match": {"surfaces": ["rest"]}, "effect": "deny"}), "policy_denied", "policy_denied"),
        (json!({"when": "surface == 'rest'", "effect": "deny"}), "policy_denied", "policy_denied"),
        (json!({"match": {"surfaces": ["cli"]}, "effect": "deny"}), "policy_denied", "approval_required"),
    ] {
        let mut named = rule.clone();
        named["name"] = json!("r");
        rules(&server, json!([named])).await;
        assert_eq!((&*invoke(Some("cli")).await, &*invoke(None).await), (cli, rest), "{rule}");
    }
}
