//! What an allow-list means for agents and retrieval pipelines.

use reqwest::Method;
use serde_json::json;

use crate::agents::with_helper;
use crate::harness::{Server, code};
use crate::tenants::with;
use crate::waiting::token;

async fn limited(server: &Server, name: &str, tools: &[&str]) -> String {
    token(server, json!({"name": name, "role": "caller", "tools": tools})).await
}

#[tokio::test]
async fn a_token_runs_only_the_agents_on_its_list() {
    let server = with_helper().await;
    let input = json!({"input": "double it"});
    let run = async |token: &str| {
        with(&server, token, Method::POST, "/api/agents/helper/runs?mode=debug", input.clone()).await
    };
    // The name of a tool is not that of an agent.
    for (name, tools) in [("tool", ["double"]), ("name", ["helper"]), ("other", ["agents:other"])] {
        // Editors see the agent.
        let editor = json!({"name": format!("{name} editor"), "role": "editor", "tools": tools});
        let editor = token(&server, editor).await;
        let (status, answer) = run(&editor).await;
        assert_eq!((status, code(&answer)), (403, "forbidden"), "{name}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("add `agents:helper`"), "{message}");
        let caller = limited(&server, name, &tools).await;
        let (status, answer) = run(&caller).await;
        assert_eq!((status, code(&answer)), (404, "not_found"), "{name}: {answer}");
        // The same in a chat and for clients of OpenAI.
        let chat = json!({"agent": "helper"});
        let (status, answer) = with(&server, &caller, Method::POST, "/api/chats", chat.clone()).await;
        assert_eq!((status, code(&answer)), (404, "not_found"), "{name}: {answer}");
        let (status, chat) = with(&server, &editor, Method::POST, "/api/chats", chat).await;
        assert_eq!(status, 201, "{name}: {chat}");
        let path = format!("/api/chats/{}/messages?mode=debug", chat["data"]["id"].as_str().unwrap());
        let (status, answer) =
            with(&server, &editor, Method::POST, &path, json!({"content": "double it"})).await;
        assert_eq!((status, code(&answer)), (403, "forbidden"), "{name}: {answer}");
        let body = json!({"model": "helper", "messages": [{"role": "user", "content": "double it"}]});
        for (token, expected) in [(&caller, 404), (&editor, 403)] {
            let path = "/v1/chat/completions";
            let (status, answer) = with(&server, token, Method::POST, path, body.clone()).await;
            assert_eq!(status, expected, "{name}: {answer}");
            let (_, models) = with(&server, token, Method::GET, "/v1/models", json!({})).await;
            assert_eq!(models["data"], json!([]), "{name}");
        }
    }
    for tools in [&["agents:helper", "double"][..], &["agents:*", "double"], &["*"]] {
        let token = limited(&server, &tools.join(" "), tools).await;
        let (status, answer) = run(&token).await;
        assert_eq!((status, &answer["data"]["output"]), (200, &json!("It is 42.")), "{tools:?}: {answer}");
    }
}

#[tokio::test]
async fn a_token_queries_only_the_pipelines_on_its_list() {
    let server = Server::start().await;
    let (status, answer) = server.post("/api/pipelines", json!({"slug": "handbook"})).await;
    assert_eq!(status, 201, "{answer}");
    let query = json!({"query": "badger"});
    let ask = async |token: &str| {
        with(&server, token, Method::POST, "/api/pipelines/handbook/query", query.clone()).await
    };
    let other = limited(&server, "other", &["weather"]).await;
    let (status, answer) = ask(&other).await;
    assert_eq!((status, code(&answer)), (404, "not_found"), "{answer}");
    let documents = with(&server, &other, Method::GET, "/api/pipelines/handbook/documents", json!({})).await;
    assert_eq!(documents.0, 404, "{}", documents.1);
    let editor = json!({"name": "editor", "role": "editor", "tools": ["weather"]});
    let (status, answer) = ask(&token(&server, editor).await).await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    let own = limited(&server, "own", &["pipelines:handbook"]).await;
    let (status, answer) = ask(&own).await;
    assert_eq!((status, &answer["data"]["hits"]), (200, &json!([])), "{answer}");
}

#[tokio::test]
async fn a_token_reads_only_the_tools_on_its_list() {
    let server = Server::start().await;
    for name in ["mine", "other"] {
        let body = json!({"name": name, "description": "d", "implementation": {"type": "http", "url": "https://example.com/"}});
        let (status, answer) = server.post("/api/tools", body).await;
        assert_eq!(status, 201, "{answer}");
    }
    for role in ["caller", "editor"] {
        let body = json!({"name": role, "role": role, "tools": ["mine"]});
        let token = token(&server, body).await;
        // Callers read no usage, of whatever tool.
        let usage = (role == "editor").then_some("/usage");
        let paths = ["", "/definition", "/source", "/revisions", "/diff", "/examples"];
        for path in paths.into_iter().chain(usage) {
            let read = async |tool: &str| {
                with(&server, &token, Method::GET, &format!("/api/tools/{tool}{path}"), json!({})).await
            };
            let (status, answer) = read("other").await;
            assert_eq!((status, code(&answer)), (404, "not_found"), "{role} {path}: {answer}");
            assert_ne!(read("mine").await.0, 404, "{role} {path}");
        }
    }
}

#[tokio::test]
async fn a_tool_may_have_the_name_of_a_route() {
    let server = Server::start().await;
    for name in ["search", "tools", "bundles", "definitions", "builtins"] {
        let body = json!({"name": name, "description": "d", "implementation": {"type": "http", "url": "https://example.com/"}});
        let (status, answer) = server.post("/api/tools", body).await;
        assert_eq!(status, 201, "{name}: {answer}");
        for reference in [format!("user-created:{name}"), format!(":{name}")] {
            let (status, answer) = server.get(&format!("/api/tools/{reference}")).await;
            assert_eq!((status, &answer["data"]["name"]), (200, &json!(name)), "{answer}");
            assert_eq!(server.get(&format!("/api/tools/{reference}/definition")).await.0, 200, "{reference}");
        }
    }
    let (status, answer) = server.get("/api/tools/search?q=sea").await;
    assert_eq!((status, answer["data"]["tools"].is_array()), (200, true), "{answer}");
}
