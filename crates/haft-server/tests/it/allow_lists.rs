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
        let token = limited(&server, name, &tools).await;
        let (status, answer) = run(&token).await;
        assert_eq!((status, code(&answer)), (403, "forbidden"), "{name}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("add `agents:helper`"), "{message}");
        // The same in a chat and for clients of OpenAI.
        let (status, chat) =
            with(&server, &token, Method::POST, "/api/chats", json!({"agent": "helper"})).await;
        assert_eq!(status, 201, "{name}: {chat}");
        let path = format!("/api/chats/{}/messages?mode=debug", chat["data"]["id"].as_str().unwrap());
        let (status, answer) =
            with(&server, &token, Method::POST, &path, json!({"content": "double it"})).await;
        assert_eq!((status, code(&answer)), (403, "forbidden"), "{name}: {answer}");
        let body = json!({"model": "helper", "messages": [{"role": "user", "content": "double it"}]});
        let (status, answer) = with(&server, &token, Method::POST, "/v1/chat/completions", body).await;
        assert_eq!(status, 403, "{name}: {answer}");
        let (_, models) = with(&server, &token, Method::GET, "/v1/models", json!({})).await;
        assert_eq!(models["data"], json!([]), "{name}");
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
