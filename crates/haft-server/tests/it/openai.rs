//! The OpenAI-compatible endpoint: chat completions, responses, models, errors, and clients that go away.

use reqwest::Method;
use serde_json::{Value, json};

use crate::agents::{create, scripted, token, with_helper};
use crate::harness::{Server, function_tool, poll, send};
use crate::tenants::{tenant, with};

const CHAT: &str = "/v1/chat/completions";
const RESPONSES: &str = "/v1/responses";

/// Returns the data of the events of a stream.
async fn stream(server: &Server, path: &str, body: Value) -> Vec<String> {
    let response = server.request(Method::POST, path).body(body.to_string()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let text = response.text().await.unwrap();
    text.lines().filter_map(|line| line.strip_prefix("data: ")).map(str::to_owned).collect()
}

fn parsed(data: &[String]) -> Vec<Value> {
    data.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn question(text: &str) -> Value {
    json!({"model": "helper", "messages": [{"role": "user", "content": text}]})
}

#[tokio::test]
async fn a_chat_completion_runs_the_tools_of_the_agent() {
    let server = with_helper().await;
    let (status, answer) = server.post(CHAT, question("double it")).await;
    assert_eq!(status, 200, "{answer}");
    let choice = &answer["choices"][0];
    assert_eq!(choice["message"]["content"], "One moment.\n\nIt is 42.", "{answer}");
    assert_eq!((&choice["finish_reason"], &answer["object"]), (&json!("stop"), &json!("chat.completion")));
    assert!(choice["message"].get("tool_calls").is_none(), "{answer}");
    let calls = answer["x_haft"]["tool_calls"].as_array().unwrap();
    assert_eq!((calls.len(), &calls[0]["status"]), (1, &json!("success")), "{answer}");
    let run = answer["x_haft"]["run_id"].as_str().unwrap();
    let (_, stored) = server.get(&format!("/api/runs/{run}")).await;
    assert_eq!(
        (&stored["data"]["surface"], &stored["data"]["status"]),
        (&json!("openai"), &json!("success"))
    );
    let tokens = &answer["usage"];
    assert_eq!(
        tokens["prompt_tokens"].as_u64().unwrap() + tokens["completion_tokens"].as_u64().unwrap(),
        tokens["total_tokens"].as_u64().unwrap()
    );
}

#[tokio::test]
async fn a_streamed_chat_completion_has_the_same_text() {
    let server = with_helper().await;
    let mut body = question("double it");
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let mut data = stream(&server, CHAT, body).await;
    assert_eq!(data.pop().as_deref(), Some("[DONE]"));
    let chunks = parsed(&data);
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let text: String =
        chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "One moment.\n\nIt is 42.");
    let usage = chunks.last().unwrap();
    assert_eq!((&usage["choices"], usage["usage"]["total_tokens"].is_u64()), (&json!([]), true), "{usage}");
    assert_eq!(chunks[chunks.len() - 2]["choices"][0]["finish_reason"], "stop");
}

#[tokio::test]
async fn a_response_is_whole_or_streamed_and_can_be_continued() {
    let server = with_helper().await;
    let (status, whole) = server.post(RESPONSES, json!({"model": "helper", "input": "double it"})).await;
    assert_eq!((status, &whole["status"], &whole["object"]), (200, &json!("completed"), &json!("response")));
    let texts: Vec<&Value> =
        whole["output"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(texts, ["One moment.", "It is 42."], "{whole}");

    let id = whole["id"].as_str().unwrap();
    let (status, again) = server.get(&format!("{RESPONSES}/{id}")).await;
    assert_eq!((status, &again["output"]), (200, &whole["output"]), "{again}");

    let body = json!({"model": "helper", "input": "double it", "stream": true, "previous_response_id": id});
    let events = parsed(&stream(&server, RESPONSES, body).await);
    assert_eq!(events.first().unwrap()["type"], "response.created");
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed", "{last}");
    assert_eq!(last["response"]["previous_response_id"], id);
    let run = last["response"]["x_haft"]["run_id"].as_str().unwrap();
    let (_, stored) = server.get(&format!("/api/runs/{run}")).await;
    assert_eq!(stored["data"]["status"], "success");

    let missing = "resp_018faf50b7b67a019a05a22a6e0af101";
    let body = json!({"model": "helper", "input": "x", "previous_response_id": missing});
    let (status, error) = server.post(RESPONSES, body).await;
    assert_eq!((status, &error["error"]["param"]), (400, &json!("previous_response_id")), "{error}");
    assert_eq!(server.get(&format!("{RESPONSES}/{missing}")).await.0, 404);
}

#[tokio::test]
async fn the_models_are_the_agents_that_can_run() {
    let server = with_helper().await;
    create(&server, scripted("asleep", &[], "turns: [{text: Hi}]")).await;
    assert_eq!(server.patch("/api/agents/asleep", json!({"enabled": false})).await.0, 200);
    let (status, list) = server.get("/v1/models").await;
    let ids: Vec<&Value> = list["data"].as_array().unwrap().iter().map(|model| &model["id"]).collect();
    assert_eq!((status, &list["object"], ids), (200, &json!("list"), vec![&json!("helper")]));
    assert_eq!(server.get("/v1/models/helper").await.1["object"], "model");
    assert_eq!(server.get("/v1/models/nobody").await.1["error"]["code"], "model_not_found");
}

#[tokio::test]
async fn errors_have_the_shape_of_openai() {
    let server = with_helper().await;
    let check = |(status, answer): (u16, Value), expected: u16, code: &str| {
        assert_eq!((status, &answer["error"]["code"]), (expected, &json!(code)), "{answer}");
        assert!(answer["error"]["message"].is_string() && answer["error"]["type"].is_string(), "{answer}");
        assert!(answer.get("status").is_none(), "no envelope: {answer}");
    };
    check(send(server.bare(Method::POST, CHAT)).await, 401, "invalid_api_key");
    check(send(server.bare(Method::GET, "/v1/models").bearer_auth("wrong")).await, 401, "invalid_api_key");
    check(server.post(CHAT, json!({})).await, 400, "invalid_request");
    check(send(server.request(Method::POST, CHAT).body("{")).await, 400, "invalid_request");
    let mut unknown = question("x");
    unknown["model"] = json!("nobody");
    check(server.post(CHAT, unknown).await, 404, "model_not_found");
    let mut tools = question("x");
    tools["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
    check(server.post(CHAT, tools).await, 400, "unsupported_parameter");
    check(server.get(CHAT).await, 405, "method_not_allowed");
    check(server.get("/v1/embeddings").await, 404, "not_found");
    let large = question(&"x".repeat(9 * 1024 * 1024));
    check(server.post(CHAT, large).await, 413, "too_large");
    assert_eq!(server.patch("/api/agents/helper", json!({"enabled": false})).await.0, 200);
    check(server.post(CHAT, question("x")).await, 409, "disabled");

    let viewer = token(&server, "viewer").await;
    check(with(&server, &viewer, Method::POST, CHAT, question("x")).await, 403, "forbidden");
}

#[tokio::test]
async fn a_failed_run_is_an_error_that_clients_do_not_repeat() {
    let server = Server::start().await;
    create(&server, scripted("broken", &[], "turns: [{error: {kind: auth, message: bad key}}]")).await;
    let body = json!({"model": "broken", "messages": [{"role": "user", "content": "x"}]});
    let response = server.request(Method::POST, CHAT).body(body.to_string()).send().await.unwrap();
    assert!(response.status().is_server_error(), "{}", response.status());
    assert_eq!(response.headers()["x-should-retry"], "false");
    let error: Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
    assert!(error["error"]["message"].as_str().unwrap().contains("bad key"), "{error}");

    let mut streamed = body.clone();
    streamed["stream"] = json!(true);
    let data = stream(&server, CHAT, streamed).await;
    assert!(data.iter().any(|line| line.contains("\"error\"") && line.contains("bad key")), "{data:?}");

    let (status, response) = server.post(RESPONSES, json!({"model": "broken", "input": "x"})).await;
    assert_eq!((status, &response["status"]), (200, &json!("failed")), "{response}");
    assert!(response["error"]["message"].as_str().unwrap().contains("bad key"), "{response}");
}

#[tokio::test]
async fn instructions_and_formats_of_the_request_reach_the_model() {
    let server = Server::start().await;
    let script = "turns: [{text: '{\"n\": 1}'}]";
    create(&server, scripted("json", &[], script)).await;
    let schema = json!({"type": "object", "required": ["n"]});
    let mut body = json!({
        "model": "json",
        "messages": [{"role": "system", "content": "Only JSON."}, {"role": "user", "content": "x"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}},
        "temperature": 0.5,
    });
    let (status, answer) = server.post(CHAT, body.clone()).await;
    assert_eq!(status, 200, "{answer}");
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(content).unwrap(), json!({"n": 1}));
    body["messages"] = json!([{"role": "system", "content": "Only JSON."}]);
    let (status, answer) = server.post(CHAT, body).await;
    assert_eq!((status, &answer["error"]["param"]), (400, &json!("messages")), "{answer}");
}

/// Starts a server with the agent `deployer`, whose tool needs approval.
async fn with_deployer() -> Server {
    let server = Server::start().await;
    let mut tool = function_tool("deploy", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    let script = "
turns:
  - when: {tool: deploy, failed: true}
    text: 'It was not deployed: {{result}}'
  - when: {tool: deploy}
    text: Deployed.
  - calls: [{tool: deploy, arguments: {to: staging}}]
";
    create(&server, scripted("deployer", &["deploy"], script)).await;
    server
}

#[tokio::test]
async fn a_run_that_waits_for_approval_says_so_and_goes_on() {
    let server = with_deployer().await;
    let body = json!({"model": "deployer", "input": "deploy"});
    let (status, waiting) = server.post(RESPONSES, body).await;
    assert_eq!((status, &waiting["x_haft"]["status"]), (200, &json!("awaiting_approval")), "{waiting}");
    let approval = waiting["x_haft"]["approvals"][0]["approval_id"].as_str().unwrap();
    assert!(waiting["output"][0]["content"][0]["text"].as_str().unwrap().contains(approval), "{waiting}");
    let (status, answer) = server.post(&format!("/api/approvals/{approval}/approve"), json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let path = format!("{RESPONSES}/{}", waiting["id"].as_str().unwrap());
    let text = poll(async || {
        let (_, response) = server.get(&path).await;
        let done = response["x_haft"]["status"] == "success";
        done.then(|| response["output"][0]["content"][0]["text"].as_str().unwrap().to_owned())
    });
    assert_eq!(text.await, "Deployed.");
}

#[tokio::test]
async fn a_client_can_wait_for_the_decision() {
    let server = with_deployer().await;
    let body = json!({"model": "deployer", "messages": [{"role": "user", "content": "deploy"}]});
    let request = server.request(Method::POST, CHAT).header("prefer", "wait=60").body(body.to_string());
    let approve = async {
        let id = poll(async || {
            let (_, list) = server.get("/api/approvals?status=waiting").await;
            list["data"]["approvals"][0]["id"].as_str().map(str::to_owned)
        })
        .await;
        server.post(&format!("/api/approvals/{id}/approve"), json!({})).await
    };
    let ((status, answer), approved) = tokio::join!(send(request), approve);
    assert_eq!((status, approved.0), (200, 200), "{answer}");
    assert_eq!(answer["choices"][0]["message"]["content"], "Deployed.", "{answer}");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_the_run() {
    let server = Server::start().await;
    server.create(function_tool("gated", "gate")).await;
    let script = "turns: [{when: {tool: gated}, text: Done}, {calls: [{tool: gated, arguments: {}}]}]";
    create(&server, scripted("slow", &["gated"], script)).await;
    for (runs, is_streamed) in [(1, false), (2, true)] {
        let body = json!({
            "model": "slow", "messages": [{"role": "user", "content": "x"}], "stream": is_streamed,
        });
        let request = server.request(Method::POST, CHAT).body(body.to_string());
        let client = tokio::spawn(async move {
            let mut response = request.send().await.unwrap();
            while response.chunk().await.unwrap().is_some() {}
        });
        server.gate.entered(runs).await;
        client.abort();
        let status = poll(async || {
            let (_, list) = server.get("/api/runs").await;
            let status = list["data"]["runs"][0]["status"].as_str().unwrap().to_owned();
            (status != "running").then_some(status)
        });
        assert_eq!(status.await, "cancelled", "streamed: {is_streamed}");
    }
}

#[tokio::test]
async fn streamed_answers_count_as_streams() {
    let server = Server::start_with(|settings| settings.server.max_streams_per_token = 1).await;
    server.create(function_tool("gated", "gate")).await;
    let script = "turns: [{when: {tool: gated}, text: Done}, {calls: [{tool: gated, arguments: {}}]}]";
    create(&server, scripted("slow", &["gated"], script)).await;
    let chat = server.post("/api/chats", json!({"agent": "slow"})).await.1;
    let chat = format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap());
    let question = json!({"model": "slow", "messages": [{"role": "user", "content": "x"}], "stream": true});
    let request = server.request(Method::POST, CHAT).body(question.to_string());
    let client = tokio::spawn(async move {
        let mut response = request.send().await.unwrap();
        while response.chunk().await.unwrap().is_some() {}
    });
    server.gate.entered(1).await;
    let refused = async || {
        for (path, body) in [
            (CHAT, question.clone()),
            (RESPONSES, json!({"model": "slow", "input": "x", "stream": true})),
            ("/api/agents/slow/runs", json!({"input": "x"})),
            (&format!("{chat}/messages"), json!({"content": "x"})),
        ] {
            let request = server.request(Method::POST, path).header("accept", "text/event-stream");
            let (status, answer) = send(request.body(body.to_string())).await;
            assert_eq!(status, 503, "{path}: {answer}");
            assert!(answer.to_string().contains("server.max_streams_per_token"), "{path}: {answer}");
        }
    };
    refused().await;
    // Nothing was started and nothing was written.
    let runs = server.get("/api/runs").await.1;
    assert_eq!(runs["data"]["runs"].as_array().unwrap().len(), 1, "{runs}");
    assert_eq!(server.get(&format!("{chat}/messages")).await.1["data"]["messages"], json!([]));
    // A client that waits for the whole answer has no stream.
    let whole =
        server.request(Method::POST, "/api/agents/slow/runs?async=true").body(r#"{"input": "x"}"#.to_owned());
    assert_eq!(send(whole.header("accept", "text/event-stream")).await.0, 202);
    client.abort();
    let events = async || {
        let response = server.request(Method::GET, "/api/events").send().await.unwrap();
        (response.status() == 200).then_some(())
    };
    poll(events).await;
}

#[tokio::test]
async fn another_tenant_has_no_models_and_no_responses() {
    let server = with_helper().await;
    let (_, whole) = server.post(RESPONSES, json!({"model": "helper", "input": "hi"})).await;
    let id = whole["id"].as_str().unwrap();
    let other = tenant(&server, "acme").await;
    let (status, list) = with(&server, &other, Method::GET, "/v1/models", Value::Null).await;
    assert_eq!((status, &list["data"]), (200, &json!([])));
    for (method, path, body) in [
        (Method::POST, CHAT.to_owned(), question("x")),
        (Method::GET, "/v1/models/helper".to_owned(), Value::Null),
        (Method::GET, format!("{RESPONSES}/{id}"), Value::Null),
        (Method::POST, format!("{RESPONSES}/{id}/cancel"), Value::Null),
    ] {
        let (status, answer) = with(&server, &other, method, &path, body).await;
        assert_eq!(status, 404, "{path}: {answer}");
    }
}
