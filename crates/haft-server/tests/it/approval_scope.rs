//! What an approval covers, and what it does not.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::waiting::{decide, finished, guarded, invoke, token};

/// A rule that only admins decide about, for large amounts.
async fn rule_for_large(server: &Server) {
    let rules = json!({"rules": [{"name": "large", "match": {"tools": ["guarded"]}, "when": "args.n > 100",
                                  "effect": "approve", "approvers": {"roles": ["admin"]}}]});
    let (status, answer) = server.put("/api/policy", rules).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn a_confirmation_does_not_stand_for_the_approvers_of_a_rule() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    // A rule that was added while the call waits.
    let early = invoke(&server, &agent, json!({"n": 600})).await.1;
    rule_for_large(&server).await;
    let (status, refused) = decide(&server, &agent, &early["approval_id"], "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "{refused}");
    // Arguments that the requester changes into what the rule holds back.
    let small = invoke(&server, &agent, json!({"n": 1})).await.1;
    let edited = json!({"args": {"n": 7777}});
    let (status, refused) = decide(&server, &agent, &small["approval_id"], "approve", edited.clone()).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "{refused}");
    // A confirmation that the requester has remembered.
    let remember = json!({"remember": {"scope": "token", "any_args": true}});
    assert_eq!(decide(&server, &agent, &small["approval_id"], "approve", remember).await.0, 200);
    let done = finished(&server, &small["call_id"]).await;
    assert_eq!(done["value"], json!({"n": 1}), "{done}");
    assert_eq!(invoke(&server, &agent, json!({"n": 2})).await.1["value"], json!({"n": 2}));
    let large = invoke(&server, &agent, json!({"n": 8888})).await;
    assert_eq!((large.0, code(&large.1)), (202, "approval_required"), "{}", large.1);
    // An approver of the rule may change the arguments, and what was asked stays known.
    let (status, approved) = decide(&server, &server.token, &large.1["approval_id"], "approve", edited).await;
    assert_eq!((status, &approved["data"]["requested_args"]), (200, &json!({"n": 8888})), "{approved}");
    let done = finished(&server, &large.1["call_id"]).await;
    assert_eq!((&done["value"], &done["decision"]["rule"]), (&json!({"n": 7777}), &json!("large")), "{done}");
}

#[tokio::test]
async fn a_call_that_a_rule_denies_meanwhile_is_not_approved() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let answer = invoke(&server, &agent, json!({"n": 600})).await.1;
    let deny = json!({"rules": [{"name": "no", "match": {"tools": ["guarded"]}, "effect": "deny"}]});
    assert_eq!(server.put("/api/policy", deny).await.0, 200);
    let (status, refused) = decide(&server, &agent, &answer["approval_id"], "approve", json!({})).await;
    assert_eq!((status, code(&refused)), (403, "policy_denied"), "{refused}");
}

#[tokio::test]
async fn remembered_approvals_are_listed_and_forgotten_and_only_admins_grant_for_everyone() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let other = token(&server, json!({"name": "other", "role": "caller"})).await;
    let answer = invoke(&server, &agent, json!({"n": 1})).await.1;
    let everyone = json!({"remember": {"scope": "tool", "any_args": true}});
    let (status, refused) =
        decide(&server, &agent, &answer["approval_id"], "approve", everyone.clone()).await;
    assert_eq!((status, code(&refused)), (403, "forbidden"), "{refused}");
    let (status, decided) = decide(&server, &server.token, &answer["approval_id"], "approve", everyone).await;
    assert_eq!((status, &decided["data"]["remembered"]["scope"]), (200, &json!("tool")), "{decided}");
    assert_eq!(invoke(&server, &other, json!({"n": 3})).await.1["value"], json!({"n": 3}));

    let (_, grants) = server.get("/api/approval-grants").await;
    let grant = &grants["data"]["grants"][0];
    assert_eq!(grant["cause"], "requires_confirmation", "{grants}");
    assert!(grant["tool"].as_str().unwrap().contains("guarded"), "{grants}");
    let path = format!("/api/approval-grants/{}", grant["id"].as_str().unwrap());
    let list = send(server.bare(Method::GET, "/api/approval-grants").bearer_auth(&other)).await.1;
    assert_eq!(list["data"]["grants"], json!([]), "callers see their own");
    assert_eq!(send(server.bare(Method::DELETE, &path).bearer_auth(&other)).await.0, 404);
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(server.delete(&path).await.0, 404);
    assert_eq!(code(&invoke(&server, &other, json!({"n": 3})).await.1), "approval_required");
}

#[tokio::test]
async fn a_key_belongs_to_one_tool_and_its_arguments_while_the_call_waits_too() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    server.create(function_tool("other", "echo")).await;
    let call = async |path: &str, args: Value| {
        let request = server.bare(Method::POST, path).bearer_auth(&agent);
        let (status, body) =
            send(request.header("Idempotency-Key", "k").body(json!({"args": args}).to_string())).await;
        (status, code(&body).to_owned())
    };
    assert_eq!(call("/api/tools/guarded/invoke", json!({"n": 1})).await.0, 202);
    let conflict = (409, "idempotency_conflict".to_owned());
    assert_eq!(call("/api/tools/guarded/invoke", json!({"n": 2})).await, conflict);
    assert_eq!(call("/api/tools/other/invoke", json!({"n": 1})).await, conflict);
    assert_eq!(call("/api/tools/other/invoke?async=true", json!({"n": 1})).await, conflict);
    assert_eq!(call("/api/tools/guarded/invoke", json!({"n": 1})).await.0, 202);
}

#[tokio::test]
async fn a_running_call_with_a_key_is_cancelled() {
    let server = Server::start().await;
    server.create(function_tool("slow", "sleep")).await;
    let request = server.request(Method::POST, "/api/tools/slow/invoke").header("Idempotency-Key", "k");
    let running = tokio::spawn(send(request.body(r#"{"args":{}}"#)));
    let id = poll(async || {
        let list = server.get("/api/calls?status=running").await.1;
        list["data"]["calls"][0]["id"].as_str().map(str::to_owned)
    })
    .await;
    let (status, answer) = server.post(&format!("/api/calls/{id}/cancel"), json!({})).await;
    assert_eq!(status, 200, "{answer}");
    let (_, outcome) = running.await.unwrap();
    assert_eq!(code(&outcome), "cancelled", "{outcome}");
    assert_eq!(finished(&server, &json!(id)).await["status"], "cancelled");
}

#[tokio::test]
async fn waiting_approvals_are_limited_and_lists_leave_out_long_arguments() {
    let server = Server::start().await;
    let agent = guarded(&server, "echo").await;
    let limits = json!({"limits": {"max_queued_calls": 2}});
    assert_eq!(server.patch("/api/tenants/default", limits).await.0, 200);
    let long = "x".repeat(20_000);
    assert_eq!(invoke(&server, &agent, json!({"text": long})).await.0, 202);
    assert_eq!(invoke(&server, &agent, json!({"n": 2})).await.0, 202);
    let (status, refused) = invoke(&server, &agent, json!({"n": 3})).await;
    assert_eq!((status, code(&refused)), (503, "overloaded"), "{refused}");
    assert_eq!(server.get("/api/approvals?status=waiting").await.1["data"]["total"], 2);
    let (_, list) = server.get("/api/approvals?status=waiting").await;
    let shown = &list["data"]["approvals"][1];
    assert_eq!((&shown["shortened"], &shown["args"]), (&json!(true), &Value::Null), "{shown}");
    let path = format!("/api/approvals/{}", shown["id"].as_str().unwrap());
    assert_eq!(server.get(&path).await.1["data"]["args"]["text"].as_str().unwrap().len(), 20_000);
}
