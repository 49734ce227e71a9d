//! Calls that wait: for approval, in the queue, for the call with the same key.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::tenants::{tenant, with};

/// Creates a tool that needs confirmation and a token that may call it.
pub(crate) async fn guarded(server: &Server, function: &str) -> String {
    let mut tool = function_tool("guarded", function);
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    token(server, json!({"name": "agent", "role": "caller"})).await
}

pub(crate) async fn token(server: &Server, body: Value) -> String {
    let (status, made) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{made}");
    made["data"]["token"].as_str().unwrap().to_owned()
}

pub(crate) async fn invoke(server: &Server, token: &str, args: Value) -> (u16, Value) {
    with(server, token, Method::POST, "/api/tools/guarded/invoke", json!({"args": args})).await
}

pub(crate) async fn decide(
    server: &Server,
    token: &str,
    approval: &Value,
    step: &str,
    body: Value,
) -> (u16, Value) {
    let path = format!("/api/approvals/{}/{step}", approval.as_str().unwrap());
    with(server, token, Method::POST, &path, body).await
}

pub(crate) async fn finished(server: &Server, call: &Value) -> Value {
    let path = format!("/api/calls/{}", call.as_str().unwrap());
    poll(async || {
        let call = server.get(&path).await.1["data"].clone();
        let waits = ["pending", "running", "awaiting_approval"].contains(&call["status"].as_str().unwrap());
        (!waits).then_some(call)
    })
    .await
}

#[tokio::test]
async fn an_approved_call_runs_once_with_the_arguments_of_the_approver() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let (status, answer) = invoke(&server, &agent, json!({"n": 1})).await;
    assert_eq!((status, code(&answer)), (202, "approval_required"), "{answer}");
    assert_eq!((&answer["ok"], &answer["status"]), (&json!(false), &json!("awaiting_approval")));
    let (approval, call) = (&answer["approval_id"], &answer["call_id"]);
    assert_eq!(answer["approval_url"], format!("/api/approvals/{}", approval.as_str().unwrap()));
    // The same call again is the same request.
    assert_eq!(invoke(&server, &agent, json!({"n": 1})).await.1["approval_id"], *approval);
    let (_, list) = server.get("/api/approvals?status=waiting").await;
    assert_eq!(list["data"]["total"], 1, "{list}");
    let shown = &list["data"]["approvals"][0];
    assert_eq!((&shown["args"], &shown["requested_by"]), (&json!({"n": 1}), &json!("agent")));
    let (status, answer) =
        decide(&server, &server.token, approval, "approve", json!({"args": {"n": 2}})).await;
    assert_eq!((status, &answer["data"]["args_edited"]), (200, &json!(true)), "{answer}");
    let done = finished(&server, call).await;
    assert_eq!((&done["status"], &done["value"]), (&json!("success"), &json!({"n": 2})), "{done}");
    assert_eq!(done["decision"]["decided_by"], "local");
    let (status, answer) = decide(&server, &server.token, approval, "deny", json!({})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"));
    // The caller picks the outcome up by repeating the call.
    let (status, answer) = invoke(&server, &agent, json!({"n": 1})).await;
    assert_eq!((status, &answer["value"], &answer["call_id"]), (200, &json!({"n": 2}), call));
    assert_eq!(server.get("/api/calls?tool=guarded").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn a_denial_has_a_reason_and_ends_the_call() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let answer = invoke(&server, &agent, json!({})).await.1;
    let long = json!({"reason": "x".repeat(1001)});
    assert_eq!(decide(&server, &server.token, &answer["approval_id"], "deny", long).await.0, 400);
    let reason = json!({"reason": "not today"});
    assert_eq!(decide(&server, &server.token, &answer["approval_id"], "deny", reason).await.0, 200);
    let done = finished(&server, &answer["call_id"]).await;
    assert_eq!((&done["status"], &done["error"]["code"]), (&json!("denied"), &json!("approval_denied")));
    let answer = invoke(&server, &agent, json!({})).await.1;
    assert_eq!(answer["error"]["model_text"], "Tool call failed: a person denied the call: not today");
}

#[tokio::test]
async fn who_may_decide_depends_on_the_cause() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let mut risky = function_tool("risky", "echo");
    risky["policy"] = json!("elevated");
    server.create(risky).await;
    let other = token(&server, json!({"name": "other", "role": "editor"})).await;
    let answer = invoke(&server, &agent, json!({})).await.1;
    let (status, refused) = decide(&server, &other, &answer["approval_id"], "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "neither requester nor approver");
    let viewer = token(&server, json!({"name": "viewer", "role": "viewer"})).await;
    assert_eq!(decide(&server, &viewer, &answer["approval_id"], "approve", json!({})).await.0, 403);
    // The requester may confirm a call that only needs confirmation.
    assert_eq!(decide(&server, &agent, &answer["approval_id"], "approve", json!({})).await.0, 200);
    let path = "/api/tools/risky/invoke";
    let answer = with(&server, &agent, Method::POST, path, json!({})).await.1;
    let (status, refused) = decide(&server, &agent, &answer["approval_id"], "approve", json!({})).await;
    assert_eq!(status, 403, "{refused}");
    assert!(
        refused["error"]["message"].as_str().unwrap().starts_with("you asked for this call"),
        "{refused}"
    );
    let raised = token(&server, json!({"name": "raised", "elevated": true})).await;
    assert_eq!(decide(&server, &raised, &answer["approval_id"], "approve", json!({})).await.0, 200);
    assert_eq!(finished(&server, &answer["call_id"]).await["status"], "success");
    // Another caller does not see it, another tenant even less.
    let stranger = tenant(&server, "acme").await;
    let answer = invoke(&server, &agent, json!({"x": 1})).await.1;
    let another = token(&server, json!({"name": "another"})).await;
    for token in [&stranger, &another] {
        assert_eq!(decide(&server, token, &answer["approval_id"], "approve", json!({})).await.0, 404);
        assert_eq!(
            with(&server, token, Method::GET, "/api/approvals", json!({})).await.1["data"]["total"],
            0
        );
        let path = format!("/api/calls/{}", answer["call_id"].as_str().unwrap());
        assert_eq!(with(&server, token, Method::GET, &path, json!({})).await.0, 404);
    }
    let server = Server::start_with(|settings| settings.approvals.four_eyes = true).await;
    let agent = guarded(&server, "echo").await;
    let answer = invoke(&server, &agent, json!({})).await.1;
    assert_eq!(decide(&server, &agent, &answer["approval_id"], "approve", json!({})).await.0, 403);
}

#[tokio::test]
async fn a_tool_that_changed_is_not_approved() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let answer = invoke(&server, &agent, json!({})).await.1;
    let mut changed = function_tool("guarded", "tally");
    changed["requires_confirmation"] = json!(true);
    assert_eq!(server.put("/api/tools/guarded", changed).await.0, 200);
    let (status, refused) =
        decide(&server, &server.token, &answer["approval_id"], "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (409, "conflict"), "{refused}");
    assert_eq!(finished(&server, &answer["call_id"]).await["status"], "expired");
}

#[tokio::test]
async fn waiting_calls_and_approvals_survive_a_restart() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let mut asked = Vec::new();
    for number in 0..20 {
        asked.push(invoke(&server, &agent, json!({"n": number})).await.1);
    }
    for answer in &asked[..10] {
        assert_eq!(decide(&server, &server.token, &answer["approval_id"], "approve", json!({})).await.0, 200);
    }
    let server = server.restart().await;
    for (number, answer) in asked[..10].iter().enumerate() {
        assert_eq!(finished(&server, &answer["call_id"]).await["value"], json!({"n": number}));
    }
    let (_, list) = server.get("/api/approvals?status=waiting").await;
    assert_eq!(list["data"]["total"], 10, "{list}");
    assert_eq!(decide(&server, &server.token, &asked[15]["approval_id"], "approve", json!({})).await.0, 200);
    assert_eq!(finished(&server, &asked[15]["call_id"]).await["value"], json!({"n": 15}));
    assert_eq!(server.get("/api/calls?tool=guarded").await.1["data"]["total"], 20, "no call ran twice");
}

#[tokio::test]
async fn a_client_can_wait_for_the_decision() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let request = server.bare(Method::POST, "/api/tools/guarded/invoke").bearer_auth(&agent);
    let waiting =
        tokio::spawn(send(request.header("prefer", "wait=30").body(json!({"args": {"n": 1}}).to_string())));
    let approval = poll(async || {
        let list = server.get("/api/approvals?status=waiting").await.1;
        Some(list["data"]["approvals"][0]["id"].clone()).filter(Value::is_string)
    })
    .await;
    assert_eq!(decide(&server, &server.token, &approval, "approve", json!({})).await.0, 200);
    let (status, answer) = tokio::time::timeout(Duration::from_secs(20), waiting).await.unwrap().unwrap();
    assert_eq!((status, &answer["value"]), (200, &json!({"n": 1})), "{answer}");
}

#[tokio::test]
async fn a_policy_rule_holds_a_call_back_or_denies_it() {
    let server = Server::start().await;
    server.create(function_tool("pay", "echo")).await;
    let rules = json!({"rules": [
        {"name": "large", "match": {"tools": ["pay"]}, "when": "args.amount > 100", "effect": "approve"},
        {"name": "huge", "match": {"tools": ["pay"]}, "when": "args.amount > 1000", "effect": "deny", "reason": "too much"},
    ]});
    let (status, answer) = server.put("/api/policy", rules).await;
    assert_eq!(status, 200, "{answer}");
    let agent = token(&server, json!({"name": "agent"})).await;
    let pay = async |amount: u32| {
        let body = json!({"args": {"amount": amount}});
        with(&server, &agent, Method::POST, "/api/tools/pay/invoke", body).await
    };
    assert_eq!(pay(5).await.0, 200);
    let (status, answer) = pay(5000).await;
    assert_eq!((status, code(&answer)), (403, "policy_denied"), "{answer}");
    assert_eq!(answer["error"]["message"], "the policy rule `huge` denies the call: too much");
    let (status, answer) = pay(500).await;
    assert_eq!((status, code(&answer)), (202, "approval_required"), "{answer}");
    assert_eq!(decide(&server, &agent, &answer["approval_id"], "approve", json!({})).await.0, 403);
    assert_eq!(decide(&server, &server.token, &answer["approval_id"], "approve", json!({})).await.0, 200);
    let done = finished(&server, &answer["call_id"]).await;
    assert_eq!((&done["status"], &done["decision"]["rule"]), (&json!("success"), &json!("large")), "{done}");
    // A trial skips the tool's own flag, never a rule.
    let (status, answer) = server.post("/api/tools/pay/test", json!({"parameters": {"amount": 5000}})).await;
    assert_eq!((status, code(&answer)), (403, "policy_denied"), "{answer}");
}

#[tokio::test]
async fn a_token_calls_only_the_tools_on_its_list() {
    let server = Server::start_whole(|_| {}).await;
    server.create(function_tool("open", "echo")).await;
    server.create(function_tool("shut", "tally")).await;
    let limited = token(&server, json!({"name": "limited", "tools": ["open", "function_call"]})).await;
    let call = async |tool: &str| {
        with(&server, &limited, Method::POST, &format!("/api/tools/{tool}/invoke"), json!({})).await
    };
    assert_eq!(call("open").await.0, 200);
    let (status, answer) = call("shut").await;
    assert_eq!((status, code(&answer)), (403, "forbidden"), "{answer}");
    // Nor through a tool that calls others.
    let nested = json!({"args": {"function_name": "tally", "args": {}}});
    let (_, answer) = with(&server, &limited, Method::POST, "/api/tools/function_call/invoke", nested).await;
    assert_eq!(code(&answer), "forbidden", "{answer}");
}

#[tokio::test]
async fn many_calls_with_one_key_run_once() {
    let server = Server::start().await;
    server.create(function_tool("tally", "tally")).await;
    let calls: Vec<_> = (0..1_000)
        .map(|_| {
            let request =
                server.request(Method::POST, "/api/tools/tally/invoke").header("idempotency-key", "one");
            tokio::spawn(send(request))
        })
        .collect();
    for call in calls {
        let (status, answer) = call.await.unwrap();
        assert_eq!((status, &answer["value"]), (200, &json!(1)), "{answer}");
    }
    // The key belongs to the caller: another one has its own.
    let other = token(&server, json!({"name": "other"})).await;
    let request = server.bare(Method::POST, "/api/tools/tally/invoke").bearer_auth(other);
    assert_eq!(send(request.header("idempotency-key", "one")).await.1["value"], 2);
}

#[tokio::test]
async fn a_queued_call_is_cancelled_and_its_events_resume() {
    let server = Server::start_with(|settings| settings.queue.workers = 1).await;
    server.create(function_tool("slow", "gate")).await;
    let start = async || server.post("/api/tools/slow/invoke?async=true", json!({})).await.1;
    let (first, second) = (start().await, start().await);
    assert_eq!((&first["status"], &second["status"]), (&json!("pending"), &json!("pending")));
    server.gate.entered(1).await;
    let cancel = format!("/api/calls/{}/cancel", second["call_id"].as_str().unwrap());
    let (status, answer) = server.post(&cancel, json!({})).await;
    assert_eq!((status, &answer["data"]["message"]), (200, &json!("the call was cancelled before it ran")));
    assert_eq!(server.post(&cancel, json!({})).await.0, 409);
    server.gate.open();
    assert_eq!(finished(&server, &first["call_id"]).await["status"], "success");
    assert_eq!(finished(&server, &second["call_id"]).await["status"], "cancelled");
    let path = format!("/api/calls/{}/events", first["call_id"].as_str().unwrap());
    let events = server.request(Method::GET, &path).header("last-event-id", "999").send().await.unwrap();
    let text = events.text().await.unwrap();
    assert!(text.contains(r#""status":"success""#) && text.contains("passed"), "{text}");
}

#[tokio::test]
async fn an_approval_shows_what_will_run() {
    let server = Server::start().await;
    server.put("/api/credentials/GATE_KEY", json!({"value": "jade-secret"})).await;
    let agent = token(&server, json!({"name": "agent", "role": "caller"})).await;
    let path = "/api/tools/shown/invoke";
    let invoke = async |args: Value| with(&server, &agent, Method::POST, path, json!({"args": args})).await;
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    let skill = |implementation: Value| {
        json!({"name": "shown", "description": "x", "requires_confirmation": true, "input_schema": schema,
            "implementation": implementation})
    };
    let http = json!({
        "type": "http", "method": "POST", "url": "http://127.0.0.1:9/deploy/${name}?key=${GATE_KEY}",
        "headers": {"X-Key": "${GATE_KEY}"}, "body": {"target": "${name}"},
        "auth": {"type": "bearer", "token": "${GATE_KEY}"},
    });
    let script = json!({"type": "script", "runtime": "bash", "body": "echo \"$name\""});
    let exec = json!({"type": "exec", "argv": ["printf", "%s", "{{name}}"]});
    let file = json!({"type": "file_write", "path": "notes/{{name}}.txt", "content": "for {{name}}"});
    for (implementation, expected) in [
        (
            http,
            Some(
                "POST http://127.0.0.1:9/deploy/a%20b?key=***\nx-key: ***\ncontent-type: application/json\nauthorization: ***\n\n\
                 {\"target\":\"a b\"}",
            ),
        ),
        (script, Some("name='a b'\n\necho \"$name\"")),
        (exec, Some("printf '%s' 'a b'")),
        (file, Some("write 7 bytes to the file `notes/a b.txt`:\n\nfor a b")),
        (json!({"type": "function", "function": "echo"}), None),
    ] {
        server.create(skill(implementation)).await;
        let (status, answer) = invoke(json!({"name": "a b"})).await;
        assert_eq!(status, 202, "{answer}");
        let path = answer["approval_url"].as_str().unwrap();
        let (_, approval) = server.get(path).await;
        assert_eq!(approval["data"]["preview"].as_str(), expected, "{approval}");
        assert!(!approval.to_string().contains("jade-secret"), "{approval}");
        let (_, list) = server.get("/api/approvals?status=waiting").await;
        assert_eq!(list["data"]["approvals"][0]["preview"].as_str(), expected, "{list}");
        let id = &approval["data"]["id"];
        let denied = decide(&server, &server.token, id, "deny", json!({})).await;
        assert_eq!((denied.0, denied.1["data"].get("preview")), (200, None), "{}", denied.1);
        assert_eq!(server.get(path).await.1["data"].get("preview"), None, "nothing will run");
        server.delete("/api/tools/shown").await;
    }
    let long = json!({"type": "script", "runtime": "bash", "body": format!("# {}\necho", "ä".repeat(8000))});
    server.create(skill(long)).await;
    let answer = invoke(json!({})).await.1;
    let (_, approval) = server.get(answer["approval_url"].as_str().unwrap()).await;
    let preview = approval["data"]["preview"].as_str().unwrap();
    assert!(preview.len() <= 8 * 1024 && preview.ends_with('…'), "{}", preview.len());
}
