//! The person who owns the installation: the local token, the token of the environment and sessions are one person.

use haft_core::secret::Secret;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool};
use crate::people::Person;
use crate::tenants::with;
use crate::waiting::{decide, invoke, token};

const ENVIRONMENT: &str = "a-token-of-the-environment";

async fn session(server: &Server, token: &str) -> Value {
    with(server, token, Method::GET, "/api/session", Value::Null).await.1["data"].clone()
}

/// Creates a tool that asks before each call.
async fn guard(server: &Server) {
    let mut tool = function_tool("guarded", "echo");
    tool["policy"] = json!("elevated");
    server.create(tool).await;
    let rule = json!({"name": "ask", "match": {"tools": ["guarded"]}, "effect": "approve"});
    assert_eq!(server.put("/api/policy", json!({"rules": [rule]})).await.0, 200);
}

#[tokio::test]
async fn a_fresh_start_has_one_person_who_keeps_name_and_rights() {
    let server = Server::start_with(|settings| settings.token = Some(Secret::new(ENVIRONMENT.into()))).await;
    let (_, people) = server.get("/api/people").await;
    let owner = &people["data"]["people"][0];
    assert_eq!((&people["data"]["total"], &owner["name"]), (&json!(1), &json!("local")), "{people}");
    assert_eq!((&owner["status"], &owner["rights"]["platform"]), (&json!("active"), &json!(true)));
    let path = format!("/api/people/{}", owner["id"].as_str().unwrap());
    let local = std::fs::read_to_string(server.home.path().join("tokens")).unwrap().trim().to_owned();
    for value in [ENVIRONMENT, local.as_str()] {
        let who = session(&server, value).await;
        let expected =
            json!({"id": owner["id"], "kind": "person", "email": null, "groups": [], "is_reduced": false});
        assert_eq!((&who["actor"], &who["owner_id"]), (&expected, &json!("local")), "{who}");
    }
    let named = server.patch(&path, json!({"name": "Ada", "email": "ada@example.com"})).await;
    assert_eq!(named.0, 200, "{}", named.1);
    for change in [
        json!({"status": "disabled"}),
        json!({"role": "viewer"}),
        json!({"tools": ["a"]}),
        json!({"rate_limit": {"calls": 1, "per": "1m"}}),
    ] {
        let refused = server.patch(&path, change.clone()).await;
        assert_eq!((refused.0, code(&refused.1)), (409, "conflict"), "{change}: {}", refused.1);
    }
    let (_, other) = server
        .post("/api/tokens", json!({"name": "ops", "role": "admin", "platform": true, "elevated": true}))
        .await;
    let other = other["data"]["token"].as_str().unwrap();
    assert_eq!(with(&server, other, Method::DELETE, &path, Value::Null).await.0, 409);
    let server = server.restart().await;
    let who = session(&server, &server.token).await;
    assert_eq!((&who["name"], &who["actor"]["email"]), (&json!("Ada"), &json!("ada@example.com")));
    assert_eq!(server.get("/api/people").await.1["data"]["total"], 1);
}

#[tokio::test]
async fn rules_know_the_unstored_tokens_by_name_and_the_owner_by_address() {
    let server = Server::start_with(|settings| settings.token = Some(Secret::new(ENVIRONMENT.into()))).await;
    server.create(function_tool("echo", "echo")).await;
    let local = std::fs::read_to_string(server.home.path().join("tokens")).unwrap().trim().to_owned();
    let named = server.patch("/api/people/local", json!({"email": "ada@example.com"})).await;
    assert_eq!(named.0, 200, "{}", named.1);
    for (matching, of_local, of_environment) in [
        (json!({"tokens": ["local"]}), 403, 200),
        (json!({"tokens": ["environment"]}), 200, 403),
        (json!({"people": ["ada@example.com"]}), 403, 403),
    ] {
        let rule = json!({"name": "r", "match": matching, "effect": "deny"});
        assert_eq!(server.put("/api/policy", json!({"rules": [rule]})).await.0, 200);
        for (value, expected) in [(local.as_str(), of_local), (ENVIRONMENT, of_environment)] {
            let body = json!({"args": {}});
            let called = with(&server, value, Method::POST, "/api/tools/echo/invoke", body).await;
            assert_eq!(called.0, expected, "{rule}: {}", called.1);
        }
    }
}

#[tokio::test]
async fn four_eyes_are_two_people_for_the_local_owner_too() {
    let server = Server::start_with(|settings| {
        settings.approvals.four_eyes = true;
        settings.token = Some(Secret::new(ENVIRONMENT.into()));
    })
    .await;
    guard(&server).await;
    let local = std::fs::read_to_string(server.home.path().join("tokens")).unwrap().trim().to_owned();
    let own = token(&server, json!({"name": "own", "owner": "me", "role": "admin"})).await;
    let ownerless = token(&server, json!({"name": "ops", "role": "admin"})).await;
    let account = json!({"name": "robot", "role": "admin"});
    assert_eq!(server.post("/api/service-accounts", account).await.0, 201);
    let of_robot = token(&server, json!({"name": "robot", "owner": "robot"})).await;
    let ann = Person::invite(&server, json!({"name": "Ann", "role": "admin"})).await;

    for (number, requester) in [local.as_str(), ENVIRONMENT, &own].into_iter().enumerate() {
        let asked = invoke(&server, requester, json!({"n": number})).await.1;
        for approver in [local.as_str(), ENVIRONMENT, &own, &ownerless, &of_robot] {
            let refused = decide(&server, approver, &asked["approval_id"], "approve", json!({})).await;
            assert_eq!((refused.0, code(&refused.1)), (403, "forbidden"), "{}", refused.1);
        }
        let approve = format!("/api/approvals/{}/approve", asked["approval_id"].as_str().unwrap());
        assert_eq!(ann.send(&server, Method::POST, &approve, json!({})).await.0, 200);
    }
    // Programs ask, and people or other programs decide, as before.
    let program = token(&server, json!({"name": "agent"})).await;
    for (number, approver) in [local.as_str(), &ownerless, &of_robot].into_iter().enumerate() {
        let asked = invoke(&server, &program, json!({"n": number + 10})).await.1;
        let decided = decide(&server, approver, &asked["approval_id"], "approve", json!({})).await;
        assert_eq!(decided.0, 200, "{}", decided.1);
    }
    let asked = invoke(&server, &ownerless, json!({"n": 20})).await.1;
    assert_eq!(decide(&server, &ownerless, &asked["approval_id"], "approve", json!({})).await.0, 403);
}

#[tokio::test]
async fn a_token_gets_an_owner_and_keeps_its_value_and_what_it_owns() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let (_, created) = server.post("/api/tokens", json!({"name": "agent", "role": "caller"})).await;
    let (id, agent) = (created["data"]["id"].clone(), created["data"]["token"].as_str().unwrap().to_owned());
    let send =
        async |method: Method, path: &str, body: Value| with(&server, &agent, method, path, body).await;
    let (status, chat) = send(Method::POST, "/api/chats", json!({"title": "Mine"})).await;
    assert_eq!(status, 201, "{chat}");
    let chat = format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap());
    let (_, called) = send(Method::POST, "/api/tools/echo/invoke", json!({"args": {"n": 1}})).await;
    let call = format!("/api/calls/{}", called["call_id"].as_str().unwrap());

    let path = format!("/api/tokens/{}", id.as_str().unwrap());
    for (account, role) in [("weak", "viewer"), ("agent", "caller")] {
        let (status, answer) =
            server.post("/api/service-accounts", json!({"name": account, "role": role})).await;
        assert_eq!(status, 201, "{answer}");
    }
    for (owner, expected) in [("weak", 409), ("nobody", 404), ("agent", 200), ("agent", 409)] {
        let (status, answer) = server.patch(&path, json!({"owner": owner})).await;
        assert_eq!(status, expected, "{owner}: {answer}");
    }
    let (_, who) = send(Method::GET, "/api/session", Value::Null).await;
    assert_eq!(
        (&who["data"]["actor"]["kind"], &who["data"]["role"]),
        (&json!("service_account"), &json!("caller"))
    );
    assert_eq!(send(Method::GET, &chat, Value::Null).await.0, 200);
    assert_eq!(send(Method::GET, &call, Value::Null).await.0, 200);
    let (_, calls) = send(Method::GET, "/api/calls", Value::Null).await;
    assert_eq!(calls["data"]["total"], 1, "{calls}");
    // Rules by the name of the token know the service account of that name.
    let rule = json!({"name": "r", "match": {"tokens": ["agent"]}, "effect": "deny"});
    assert_eq!(server.put("/api/policy", json!({"rules": [rule]})).await.0, 200);
    assert_eq!(send(Method::POST, "/api/tools/echo/invoke", json!({"args": {}})).await.0, 403);
}

#[tokio::test]
async fn a_person_has_one_rate_for_sessions_and_tokens() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let rate = json!({"calls": 3, "per": "1h"});
    let ann = Person::invite(&server, json!({"name": "Ann", "role": "admin", "rate_limit": rate})).await;
    let (_, token) = ann.token(&server, json!({"owner": "me"})).await;
    let body = || json!({"args": {}});
    let in_session = async || ann.send(&server, Method::POST, "/api/tools/echo/invoke", body()).await;
    let with_token = async || with(&server, &token, Method::POST, "/api/tools/echo/invoke", body()).await;
    assert_eq!([in_session().await.0, with_token().await.0, in_session().await.0], [200, 200, 200]);
    let refused = with_token().await;
    assert_eq!((refused.0, &refused.1["error"]["details"]["limit"]), (429, &json!("member.rate_limit")));
    assert_eq!(in_session().await.0, 429);
    assert_eq!(server.invoke("echo", json!({})).await.0, 200);

    let (_, limits) = ann.get(&server, "/api/limits").await;
    let found = limits["data"]["limits"]
        .as_array()
        .unwrap()
        .iter()
        .find(|limit| limit["name"] == "member.rate_limit");
    assert_eq!(found.unwrap()["value"], 3, "{limits}");
    // What she creates makes no more calls than she may.
    for fields in [json!({"name": "x"}), json!({"name": "y", "rate_limit": {"calls": 2, "per": "1h"}})] {
        let (status, answer) = ann.send(&server, Method::POST, "/api/tokens", fields).await;
        assert!(status == 201 && answer["data"]["rate_limit"]["per"] == "1h", "{answer}");
    }
    let more = json!({"name": "z", "rate_limit": {"calls": 4, "per": "1h"}});
    for path in ["/api/tokens", "/api/people", "/api/service-accounts"] {
        assert_eq!(ann.send(&server, Method::POST, path, more.clone()).await.0, 403, "{path}");
    }
    for (rate, expected) in [(json!({"calls": 0, "per": "1m"}), 400), (json!({"calls": 1, "per": "0s"}), 400)]
    {
        assert_eq!(server.patch("/api/people/Ann", json!({"rate_limit": rate})).await.0, expected);
    }
    let (_, removed) = server.patch("/api/people/Ann", json!({"rate_limit": null})).await;
    assert_eq!(removed["data"]["rate_limit"], Value::Null, "{removed}");
    assert_eq!(with_token().await.0, 200);
}

#[tokio::test]
async fn calls_are_found_by_the_id_of_the_person_whatever_the_name() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let one = Person::invite(&server, json!({"name": "Kim", "role": "editor"})).await;
    let two = Person::invite(&server, json!({"name": "Kim", "role": "caller"})).await;
    for (person, count) in [(&one, 2), (&two, 1)] {
        for _ in 0..count {
            let body = json!({"args": {}});
            assert_eq!(person.send(&server, Method::POST, "/api/tools/echo/invoke", body).await.0, 200);
        }
    }
    let total =
        async |query: &str| server.get(&format!("/api/calls?{query}")).await.1["data"]["total"].clone();
    assert_eq!(total("caller=Kim").await, 3);
    assert_eq!(total(&format!("actor={}", one.id)).await, 2);
    assert_eq!(total(&format!("actor={}", two.id)).await, 1);
    assert_eq!(total(&format!("actor={}&caller={}", two.id, one.id)).await, 0);
    assert_eq!(server.get("/api/calls?actor=Kim").await.0, 400);
    // Whoever sees only their own calls does not see others by this filter.
    let (_, others) = two.get(&server, &format!("/api/calls?actor={}", one.id)).await;
    assert_eq!(others["data"]["total"], 0, "{others}");
    let (_, audited) = server.get(&format!("/api/audit?kind=calls&actor={}", one.id)).await;
    assert_eq!(audited["data"]["records"].as_array().map(Vec::len), Some(2), "{audited}");
}
