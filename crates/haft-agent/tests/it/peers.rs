//! The cassettes are what the providers send: their official Python clients read them, and read the same as haft.

use std::process::Command;

use axum::Router;
use axum::body::Bytes;
use axum::http::Uri;
use haft_agent::model::{ModelResponse, Provider};
use haft_testkit::prerequisite::{Prerequisite, skip};
use haft_testkit::upstream::{Upstream, axum};
use serde_json::{Map, Value, json};

use crate::harness::{Canned, folder, play};

const OPENAI_401: &str = r#"{"error":{"message":"Incorrect API key provided.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#;
const OPENAI_429: &str =
    r#"{"error":{"message":"Rate limit reached","type":"tokens","param":null,"code":"rate_limit_exceeded"}}"#;
const ANTHROPIC_529: &str = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;

/// Returns the cassette for a request, or the error that its path asks for.
fn cassette_of(uri: &Uri, body: &Bytes) -> Canned {
    let error = |status, body: &str| Canned::new(status, "application/json", body);
    let path = uri.path();
    let name = match path.split('/').nth(1) {
        Some("401") => return error(401, OPENAI_401),
        Some("429") => return error(429, OPENAI_429),
        Some("529") => return error(529, ANTHROPIC_529),
        _ if path.ends_with("/chat/completions") => "chat",
        _ if path.ends_with("/responses") => "responses",
        _ => "anthropic",
    };
    let body: Value = serde_json::from_slice(body).unwrap();
    let form = if body["stream"] == true { "stream.sse" } else { "whole.json" };
    Canned::cassette(&format!("{name}_{form}"))
}

/// Returns what the clients report, as haft reads it.
fn read_by_haft(name: &str, answer: &ModelResponse) -> Value {
    let calls: Vec<Value> =
        answer.tool_calls().map(|call| json!([call.id, call.name, call.arguments])).collect();
    let mut read = json!({
        "text": answer.text(), "calls": calls, "input": answer.usage.input, "output": answer.usage.output,
    });
    if !name.starts_with("chat") {
        read["reasoning"] = json!(answer.reasoning().trim());
    }
    read
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the clients of other projects are under test")]
async fn official_clients_read_the_cassettes() {
    let python = folder().join("../../../target/peers/models/bin/python");
    if !python.exists() {
        skip(Prerequisite::ModelPeers, &format!("`{}` is not installed", python.display()));
        return;
    }
    let router =
        Router::new().fallback(|uri: Uri, body: Bytes| async move { cassette_of(&uri, &body).response() });
    let server = Upstream::serve(router).await.unwrap();
    let address = server.url("");
    let reading = tokio::task::spawn_blocking(move || {
        Command::new(python).arg(folder().join("peers/read_cassettes.py")).arg(address).output().unwrap()
    });
    let output = reading.await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();

    let mut expected = Map::new();
    for (name, provider) in
        [("chat", Provider::OpenAiChat), ("responses", Provider::OpenAi), ("anthropic", Provider::Anthropic)]
    {
        for (form, extension) in [("stream", "sse"), ("whole", "json")] {
            let key = format!("{name}_{form}");
            let answer = play(provider, Canned::cassette(&format!("{key}.{extension}"))).await.unwrap();
            expected.insert(key.clone(), read_by_haft(&key, &answer));
        }
    }
    expected.insert("openai_401".to_owned(), json!({"message": "Incorrect API key provided."}));
    expected.insert("openai_429".to_owned(), json!({"message": "Rate limit reached"}));
    expected.insert("anthropic_529".to_owned(), json!({"message": "Overloaded"}));
    assert_eq!(read, expected);
}
