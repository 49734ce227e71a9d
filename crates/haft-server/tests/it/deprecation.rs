//! Deprecated tools: warnings, replacements, removal dates.

use std::time::Duration;

use haft_core::Timestamp;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll};
use crate::mcp::client::{Session, token_of};

async fn deprecate(server: &Server, tool: &str, body: Value) -> Value {
    let (status, answer) = server.post(&format!("/api/tools/{tool}/deprecate"), body).await;
    assert_eq!(status, 200, "{answer}");
    answer["data"].clone()
}

#[tokio::test]
async fn callers_are_warned_and_told_what_replaces_the_tool() {
    let server = Server::start().await;
    server.create(function_tool("old", "echo")).await;
    server.create(function_tool("new", "echo")).await;
    let body =
        json!({"replaced_by": "new", "removal_date": "2100-01-31", "message": "the API is going away"});
    let tool = deprecate(&server, "old", body).await;
    let deprecation = &tool["deprecation"];
    assert_eq!(tool["status"], "deprecated");
    assert_eq!(
        (&deprecation["replaced_by"], &deprecation["removal_date"], &deprecation["deprecated_by"]),
        (&json!("user-created:new"), &json!("2100-01-31T00:00:00Z"), &json!("local"))
    );
    let notice = "this tool is deprecated and will be removed on 2100-01-31; use `user-created:new` instead: \
                  the API is going away";
    let response = server.request(Method::POST, "/api/tools/old/invoke").send().await.unwrap();
    let headers = response.headers().clone();
    let header = |name: &str| headers[name].to_str().unwrap().to_owned();
    assert_eq!(header("sunset"), "Sun, 31 Jan 2100 00:00:00 GMT");
    assert!(header("deprecation").strip_prefix('@').is_some_and(|at| at.parse::<i64>().is_ok()));
    let answer: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!((&answer["ok"], &answer["warnings"]), (&json!(true), &json!([notice])), "{answer}");

    // Models read it in the description, with the name that they call.
    let (_, definition) = server.get("/api/tools/old/definition").await;
    let description = definition["data"]["function"]["description"].as_str().unwrap();
    let expected = "Deprecated: this tool is deprecated and will be removed on 2100-01-31; use `new` instead: the API is \
                    going away.\n\nRuns a function of the tests";
    assert_eq!(description, expected);
    let token = token_of(&server, "model", "caller").await;
    let session = Session::open(&server, "/mcp", &token, "2025-06-18").await;
    let list = session.ask("tools/list", json!({})).await.last();
    let tools = list["result"]["tools"].as_array().unwrap();
    let listed = tools.iter().find(|tool| tool["name"] == "old").unwrap();
    assert_eq!(listed["description"], expected);
    let called = session.ask("tools/call", json!({"name": "old", "arguments": {}})).await.last();
    let warning = called["result"]["_meta"]["haft/warnings"][0].as_str().unwrap();
    assert!(warning.contains("use `new` instead"), "{called}");

    // Publishing ends the deprecation, and so does a restart not.
    let server = server.restart().await;
    let (_, tool) = server.get("/api/tools/old").await;
    assert_eq!(tool["data"]["deprecation"]["replaced_by"], "user-created:new", "{tool}");
    let (_, tool) = server.post("/api/tools/old/publish", json!({})).await;
    assert_eq!((&tool["data"]["status"], &tool["data"]["deprecation"]), (&json!("published"), &json!(null)));
    let (_, answer) = server.invoke("old", json!({})).await;
    assert_eq!(answer["warnings"], json!(null), "{answer}");
}

#[tokio::test]
async fn calls_are_rejected_from_the_removal_date_on() {
    let server = Server::start().await;
    server.create(function_tool("old", "echo")).await;
    server.create(function_tool("new", "echo")).await;
    let soon = soon();
    deprecate(&server, "old", json!({"replaced_by": "new", "removal_date": soon})).await;
    assert_eq!(server.invoke("old", json!({})).await.0, 200);
    let answer = poll(async || {
        let (status, answer) = server.invoke("old", json!({})).await;
        (status != 200).then_some((status, answer))
    })
    .await;
    let (status, answer) = answer;
    assert_eq!((status, code(&answer)), (410, "removed"), "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("was removed on") && message.contains("use `user-created:new` instead"),
        "{message}"
    );
    assert_eq!(answer["error"]["details"]["replaced_by"], "user-created:new");
    assert_eq!(answer["error"]["retryable"], false);
    let (_, all) = server.get("/api/tools/definitions/all").await;
    let names: Vec<_> =
        all["data"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].clone()).collect();
    assert!(!names.contains(&json!("old")) && names.contains(&json!("new")), "{names:?}");
    let (_, tool) = server.get("/api/tools/old").await;
    assert_eq!((&tool["data"]["callable"], &tool["data"]["ready"]), (&json!(false), &json!(true)));
    server.post("/api/tools/old/publish", json!({})).await;
    assert_eq!(server.invoke("old", json!({})).await.0, 200, "publishing brings it back");
}

fn soon() -> String {
    use haft_core::Clock as _;
    let now: Timestamp = haft_runtime::clock::SystemClock.now();
    (now + Duration::from_secs(3)).to_string()
}

#[tokio::test]
async fn an_invalid_deprecation_changes_nothing() {
    let server = Server::start().await;
    server.create(function_tool("old", "echo")).await;
    server.create(function_tool("gone", "echo")).await;
    deprecate(&server, "gone", json!({})).await;
    for (body, expected) in [
        (json!({"replaced_by": "nothing"}), "invalid `replaced_by`: tool `nothing` not found"),
        (json!({"replaced_by": "old"}), "is the deprecated tool itself"),
        (json!({"replaced_by": "gone"}), "is deprecated, too"),
        (json!({"replaced_by": "a b"}), "invalid `replaced_by`"),
        (json!({"removal_date": "2020-01-01"}), "is in the past"),
        (json!({"removal_date": "soon"}), "is not a date"),
        (json!({"removal_date": "2100-02-31"}), "is not a date"),
        (json!({"message": "x".repeat(501)}), "1 to 500 characters"),
        (json!({"message": "two\nlines"}), "one line"),
        (json!({"replacedby": "x"}), "replacedby"),
    ] {
        let (status, answer) = server.post("/api/tools/old/deprecate", body.clone()).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert_eq!(status, 400, "{body}: {message}");
        assert!(message.contains(expected), "{body}: {message}");
    }
    let (_, tool) = server.get("/api/tools/old").await;
    assert_eq!((&tool["data"]["status"], &tool["data"]["deprecation"]), (&json!("draft"), &json!(null)));
}

#[tokio::test]
async fn another_version_of_the_same_tool_can_replace_it() {
    let server = Server::start().await;
    server.create(function_tool("worker", "echo")).await;
    let mut newer = function_tool("worker", "double");
    newer["version"] = json!("2.0.0");
    server.create(newer).await;
    let tool = deprecate(&server, "worker@1.0.0", json!({"replaced_by": "worker"})).await;
    assert_eq!(tool["deprecation"]["replaced_by"], "user-created:worker@2.0.0", "{tool}");
}

#[tokio::test]
async fn a_draft_that_is_published_later_does_not_take_over_a_name() {
    let server = Server::start_with(|settings| settings.mode = haft_core::runnable::Mode::Production).await;
    for bundle in ["early", "late"] {
        server.post(&format!("/api/tools?bundle={bundle}"), function_tool("worker", "echo")).await;
    }
    let token = token_of(&server, "model", "caller").await;
    let session = Session::open(&server, "/mcp", &token, "2025-06-18").await;
    let names = async || {
        let list = session.ask("tools/list", json!({})).await.last();
        let tools = list["result"]["tools"].as_array().unwrap().clone();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .filter(|name| name.starts_with("worker"))
            .collect::<Vec<_>>()
    };
    server.post("/api/tools/late:worker/publish", json!({})).await;
    assert_eq!(names().await, ["worker"]);
    server.post("/api/tools/early:worker/publish", json!({})).await;
    assert_eq!(names().await.len(), 2);
    session.ask("tools/call", json!({"name": "worker", "arguments": {}})).await;
    let (_, calls) = server.get("/api/calls").await;
    assert_eq!(calls["data"]["calls"][0]["tool"], "late:worker@1.0.0", "{calls}");
}
