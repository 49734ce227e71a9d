//! Approvals in the client: the person at it decides where the client can ask.

use reqwest::Response;
use serde_json::{Value, json};

use super::client::{MODERN, Session, modern, request, send};
use crate::harness::{Server, function_tool};

/// Creates a tool that needs confirmation and counts its runs; returns a token that may call it.
async fn guarded(server: &Server) -> String {
    let mut tool = function_tool("guarded", "tally");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    let (status, made) = server.post("/api/tokens", json!({"name": "agent"})).await;
    assert_eq!(status, 201, "{made}");
    made["data"]["token"].as_str().unwrap().to_owned()
}

/// Opens a session of a client that can show forms.
async fn open<'a>(server: &'a Server, token: &str) -> Session<'a> {
    let version = "2025-11-25";
    let message = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": version, "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"},
    }});
    let answer = send(request(server, "/mcp", token, &message)).await;
    let id = answer.session.clone().unwrap();
    let session = Session { server, path: "/mcp", token: token.to_owned(), version: version.to_owned(), id };
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(send(session.request(&ready)).await.status, 202);
    session
}

/// A call whose response is read message by message.
struct RunningCall {
    response: Response,
    text: String,
}

impl RunningCall {
    async fn begin(session: &Session<'_>, id: u32, args: Value) -> Self {
        let message = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "guarded", "arguments": args}});
        let response = session.request(&message).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, text: String::new() }
    }

    async fn next(&mut self) -> Value {
        loop {
            if let Some((line, rest)) = self.text.split_once('\n') {
                let message =
                    line.strip_prefix("data:").and_then(|text| serde_json::from_str(text.trim()).ok());
                self.text = String::from(rest);
                match message {
                    Some(message) => return message,
                    None => continue,
                }
            }
            let chunk = self.response.chunk().await.unwrap();
            let Some(chunk) = chunk else { return serde_json::from_str(&self.text).unwrap() };
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }
}

async fn answer(session: &Session<'_>, question: &Value, result: Value) {
    let message = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    assert_eq!(send(session.request(&message)).await.status, 202);
}

fn text(result: &Value) -> String {
    result["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

#[tokio::test]
async fn a_session_client_approves_denies_and_remembers() {
    let server = Server::start().await;
    let agent = guarded(&server).await;
    let session = open(&server, &agent).await;
    let mut call = RunningCall::begin(&session, 1, json!({"city": "Ulm"})).await;
    let question = call.next().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let message = question["params"]["message"].as_str().unwrap();
    assert!(message.contains("guarded") && message.contains("Ulm"), "{message}");
    let fields = &question["params"]["requestedSchema"]["properties"];
    assert_eq!(fields["decision"]["enum"], json!(["approve", "deny"]), "{question}");
    assert_eq!(fields["remember"]["type"], "boolean");
    // The approval exists before anybody is asked.
    assert_eq!(server.get("/api/approvals?status=waiting").await.1["data"]["total"], 1);
    answer(&session, &question, json!({"action": "accept", "content": {"decision": "approve"}})).await;
    let first = call.next().await;
    assert_eq!(first["result"]["isError"], false, "{first}");
    let decided = server.get("/api/approvals?status=approved").await.1;
    assert_eq!(decided["data"]["approvals"][0]["decided_by"], "agent", "{decided}");

    let mut call = RunningCall::begin(&session, 2, json!({"city": "Ulm"})).await;
    let question = call.next().await;
    assert_eq!(question["method"], "elicitation/create", "the same call later is a new one: {question}");
    answer(&session, &question, json!({"action": "decline", "content": {"reason": "not today"}})).await;
    let denied = call.next().await;
    assert_eq!(denied["result"]["isError"], true, "{denied}");
    assert_eq!(text(&denied), "Tool call failed: a person denied the call: not today");

    let mut call = RunningCall::begin(&session, 3, json!({"city": "Bonn"})).await;
    let question = call.next().await;
    let content = json!({"decision": "approve", "remember": true});
    answer(&session, &question, json!({"action": "accept", "content": content})).await;
    let third: u64 = text(&call.next().await).parse().unwrap();
    let mut call = RunningCall::begin(&session, 4, json!({"city": "Bonn"})).await;
    let fourth: u64 = text(&call.next().await).parse().unwrap();
    assert_eq!(fourth, third + 1, "remembered in this session, and run again");
    // Another session of the same token is asked again.
    let other = open(&server, &agent).await;
    let mut call = RunningCall::begin(&other, 1, json!({"city": "Bonn"})).await;
    assert_eq!(call.next().await["method"], "elicitation/create");
}

#[tokio::test]
async fn a_cancelled_question_leaves_the_call_waiting() {
    let server = Server::start().await;
    let agent = guarded(&server).await;
    let session = open(&server, &agent).await;
    let mut call = RunningCall::begin(&session, 1, json!({})).await;
    let question = call.next().await;
    answer(&session, &question, json!({"action": "cancel"})).await;
    let waiting = call.next().await;
    assert!(text(&waiting).contains("a person has to approve this call first (approval "), "{waiting}");
    let (_, list) = server.get("/api/approvals?status=waiting").await;
    let id = list["data"]["approvals"][0]["id"].as_str().unwrap();
    assert_eq!(server.post(&format!("/api/approvals/{id}/approve"), json!({})).await.0, 200);
    // A repeat picks up the decision, and asks nobody.
    let mut call = RunningCall::begin(&session, 2, json!({})).await;
    let done = call.next().await;
    assert_eq!(done["result"]["isError"], false, "{done}");
    assert_eq!(server.get("/api/calls?tool=guarded").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn a_client_without_forms_and_one_that_may_not_decide_get_an_error() {
    let server = Server::start_with(|settings| settings.approvals.four_eyes = true).await;
    let agent = guarded(&server).await;
    let session = open(&server, &agent).await;
    let mut call = RunningCall::begin(&session, 1, json!({})).await;
    assert!(text(&call.next().await).contains("a person has to approve"), "somebody else decides");
    let server = Server::start().await;
    let agent = guarded(&server).await;
    let plain = Session::open(&server, "/mcp", &agent, "2025-06-18").await;
    let answer = plain.ask("tools/call", json!({"name": "guarded", "arguments": {}})).await.last();
    assert!(text(&answer).contains("a person has to approve"), "{answer}");
    let stateless =
        send(modern(&server, "/mcp", &agent, "tools/call", json!({"name": "guarded", "arguments": {}})));
    let answer = stateless.await.last();
    assert!(text(&answer).contains("a person has to approve"), "{answer}");
}

#[tokio::test]
async fn a_stateless_client_is_asked_by_the_result() {
    let server = Server::start().await;
    let agent = guarded(&server).await;
    let call = async |responses: Value, progress: bool| {
        let mut params = json!({"name": "guarded", "arguments": {"city": "Ulm"}, "_meta": {}});
        if responses.is_object() {
            params["inputResponses"] = responses;
        }
        if progress {
            params["_meta"]["progressToken"] = json!(1);
        }
        let mut message = super::client::modern_message("tools/call", params);
        message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {"form": {}}});
        let request = request(&server, "/mcp", &agent, &message)
            .header("mcp-protocol-version", MODERN)
            .header("mcp-method", "tools/call")
            .header("mcp-name", "guarded");
        send(request).await.last()
    };
    // With a progress token the call goes through rmcp, without one past it.
    for progress in [false, true] {
        let asked = call(Value::Null, progress).await;
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let requests = asked["result"]["inputRequests"].as_object().unwrap();
        let (key, question) = requests.iter().next().unwrap();
        assert_eq!(question["method"], "elicitation/create");
        assert!(question["params"]["message"].as_str().unwrap().contains("Ulm"), "{question}");
        assert!(question["params"]["requestedSchema"]["properties"]["remember"].is_null(), "no session");
        let other = json!({"approval-01900000-0000-7000-8000-00000000abcd": {"action": "accept", "content": {"decision": "approve"}}});
        assert_eq!(call(other, progress).await["result"]["resultType"], "input_required", "another question");
        let yes = json!({key: {"action": "accept", "content": {"decision": "approve"}}});
        let done = call(yes, progress).await;
        assert_eq!(done["result"]["isError"], false, "{done}");
        let asked = call(Value::Null, progress).await;
        let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
        let denied = call(json!({key: {"action": "decline"}}), progress).await;
        assert_eq!(text(&denied), "Tool call failed: a person denied the call");
    }
    assert_eq!(server.get("/api/calls?tool=guarded&status=success").await.1["data"]["total"], 2);
}
