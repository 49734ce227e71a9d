//! People, service accounts and groups, from the invitation to the end of their access.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::login::{browser, cookie, submit};
use crate::tenants::{tenant, with};

/// A person with an open session.
pub(crate) struct Person {
    pub(crate) id: String,
    pub(crate) cookie: String,
}

impl Person {
    /// Invites a person, who logs in with the link.
    pub(crate) async fn invite(server: &Server, body: Value) -> Self {
        let (status, answer) = server.post("/api/people", body).await;
        assert_eq!(status, 201, "{answer}");
        Self::open(server, &answer["data"]["id"], &answer["data"]["invitation"]["url"]).await
    }

    /// Logs a person in with a new link.
    pub(crate) async fn log_in(server: &Server, id: &str) -> Self {
        let (status, link) = server.post(&format!("/api/people/{id}/invitation"), Value::Null).await;
        assert_eq!(status, 201, "{link}");
        Self::open(server, &json!(id), &link["data"]["url"]).await
    }

    async fn open(server: &Server, id: &Value, url: &Value) -> Self {
        let code = url.as_str().unwrap().split_once("?invitation=").unwrap().1;
        let response = submit(server, &format!("code={code}")).await;
        assert_eq!(response.status(), 303);
        Self { id: id.as_str().unwrap().to_owned(), cookie: cookie(&response) }
    }

    /// Sends a request in the session.
    pub(crate) async fn send(
        &self,
        server: &Server,
        method: Method,
        path: &str,
        body: Value,
    ) -> (u16, Value) {
        let request = server.bare(method, path).header("cookie", &self.cookie).header("x-haft-session", "1");
        send(request.header("sec-fetch-site", "same-origin").body(body.to_string())).await
    }

    pub(crate) async fn get(&self, server: &Server, path: &str) -> (u16, Value) {
        self.send(server, Method::GET, path, Value::Null).await
    }

    /// Creates an own token; returns its id and value.
    pub(crate) async fn token(&self, server: &Server, mut body: Value) -> (String, String) {
        body["name"] = json!("laptop");
        let (status, answer) = self.send(server, Method::POST, "/api/tokens", body).await;
        assert_eq!((status, &answer["data"]["actor"]["id"]), (201, &json!(self.id)), "{answer}");
        let text = |key: &str| answer["data"][key].as_str().unwrap().to_owned();
        (text("id"), text("token"))
    }
}

fn refused(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, code(&answer.1))
}

#[tokio::test]
async fn an_invitation_logs_a_person_in_once_and_survives_a_preview() {
    let server = Server::start().await;
    let new = json!({"name": "Ann Smith", "email": "Ann@Example.com", "role": "editor"});
    let (status, answer) = server.post("/api/people", new).await;
    assert_eq!((status, &answer["data"]["status"]), (201, &json!("invited")), "{answer}");
    let id = answer["data"]["id"].as_str().unwrap();
    let path = answer["data"]["invitation"]["url"].as_str().unwrap();
    let path = path.strip_prefix(&server.url("")).unwrap();
    for _ in 0..2 {
        let page = browser().get(server.url(path)).send().await.unwrap();
        assert!(page.status() == 200 && page.headers().get("set-cookie").is_none());
        let text = page.text().await.unwrap();
        assert!(text.contains("name=\"code\"") && !text.contains("<script"), "{text}");
    }
    let code = path.split_once('=').unwrap().1;
    let opened = submit(&server, &format!("code={code}")).await;
    assert_eq!(opened.status(), 303);
    assert_eq!(submit(&server, &format!("code={code}")).await.status(), 401);
    let ann = Person { id: id.to_owned(), cookie: cookie(&opened) };
    let (_, session) = ann.get(&server, "/api/session").await;
    let session = &session["data"];
    assert_eq!(
        (&session["name"], &session["role"], &session["token_id"]),
        (&json!("Ann Smith"), &json!("editor"), &Value::Null)
    );
    assert_eq!(
        session["actor"],
        json!({"id": id, "kind": "person", "email": "ann@example.com", "groups": [], "is_reduced": false})
    );
    for reference in [id, "ann@example.com", "ANN@example.com", "Ann Smith"] {
        let (status, found) = server.get(&format!("/api/people/{reference}")).await;
        assert_eq!((status, &found["data"]["id"]), (200, &json!(id)), "{found}");
        assert_eq!((&found["data"]["status"], &found["data"]["sessions"]), (&json!("active"), &json!(1)));
        assert!(found["data"]["last_seen_at"].is_string(), "{found}");
    }
    // A new link replaces an older one that was not used.
    let first = server.post(&format!("/api/people/{id}/invitation"), Value::Null).await;
    let second = server.post(&format!("/api/people/{id}/invitation"), Value::Null).await;
    for (link, expected) in [(first, 401), (second, 303)] {
        let url = link.1["data"]["url"].as_str().unwrap().to_owned();
        let code = url.split_once("?invitation=").unwrap().1.to_owned();
        assert_eq!(submit(&server, &format!("code={code}")).await.status(), expected);
    }
    server.restart().await;
}

#[tokio::test]
async fn people_see_and_end_their_own_sessions_and_admins_those_of_people() {
    let server = Server::start().await;
    let ann = Person::invite(&server, json!({"name": "Ann", "email": "ann@example.com"})).await;
    let bob = Person::invite(&server, json!({"name": "Bob", "email": "bob@example.com"})).await;
    let (_, token) = ann.token(&server, json!({})).await;
    assert_eq!(submit(&server, &format!("token={token}")).await.status(), 303);
    let list = async |path: &str, person: &Person| {
        let (status, answer) = person.get(&server, path).await;
        assert_eq!(status, 200, "{answer}");
        answer["data"]["sessions"].as_array().unwrap().clone()
    };
    let own = list("/api/sessions", &ann).await;
    let seen: Vec<_> = own.iter().map(|one| (&one["token_name"], &one["is_current"])).collect();
    assert!(
        seen.contains(&(&json!("laptop"), &json!(false))) && seen.contains(&(&Value::Null, &json!(true))),
        "{own:?}"
    );
    assert_eq!((own.len(), list("/api/sessions?person=me", &bob).await.len()), (2, 1));
    let other = own.iter().find(|one| one["is_current"] == false).unwrap()["id"].as_str().unwrap().to_owned();
    let current =
        own.iter().find(|one| one["is_current"] == true).unwrap()["id"].as_str().unwrap().to_owned();

    // Nobody ends those of others.
    let path = format!("/api/sessions/{other}");
    assert_eq!(bob.send(&server, Method::DELETE, &path, Value::Null).await.0, 404);
    let of_ann = format!("/api/sessions?person={}", ann.id);
    assert_eq!(bob.get(&server, &of_ann).await.0, 403);
    assert_eq!(ann.send(&server, Method::DELETE, &path, Value::Null).await.0, 200);
    assert_eq!(ann.send(&server, Method::DELETE, &path, Value::Null).await.0, 404);
    // The token itself goes on.
    assert_eq!(send(server.bare(Method::GET, "/api/session").bearer_auth(&token)).await.0, 200);

    let (status, answer) = server.get(&of_ann).await;
    assert_eq!((status, answer["data"]["sessions"].as_array().unwrap().len()), (200, 1), "{answer}");
    let path = format!("/api/sessions/{current}?person={}", ann.id);
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(ann.get(&server, "/api/session").await.0, 401);
    assert_eq!(bob.get(&server, "/api/session").await.0, 200);
    let (_, log) = server.get("/api/audit?action=session.end").await;
    assert!(log.to_string().contains("\"Ann\""), "{log}");
}

#[tokio::test]
async fn invalid_people_and_groups_are_rejected() {
    let server = Server::start().await;
    Person::invite(&server, json!({"name": "Ann", "email": "ann@example.com"})).await;
    Person::invite(&server, json!({"name": "Ann"})).await;
    for (path, body, expected) in [
        ("people", json!({}), (400, "invalid_request")),
        ("people", json!({"name": ""}), (400, "invalid_request")),
        ("people", json!({"name": "x".repeat(65)}), (400, "invalid_request")),
        ("people", json!({"name": "a", "email": "no address"}), (400, "invalid_request")),
        ("people", json!({"name": "a", "email": "*@example.com"}), (400, "invalid_request")),
        ("people", json!({"name": "a", "role": "owner"}), (400, "invalid_request")),
        ("people", json!({"name": "a", "platform": true}), (400, "invalid_request")),
        ("people", json!({"name": "a", "groups": ["nope"]}), (404, "not_found")),
        ("people", json!({"name": "a", "tenant": "nope"}), (404, "not_found")),
        ("people", json!({"name": "a", "tools": ["a b"]}), (400, "invalid_request")),
        ("service-accounts", json!({"name": "a", "email": "a@b.example"}), (400, "invalid_request")),
        ("service-accounts", json!({"name": "a", "responsible": "nobody"}), (404, "not_found")),
        ("groups", json!({"name": "a,b"}), (400, "invalid_request")),
        ("groups", json!({"name": "a", "members": ["nobody"]}), (404, "not_found")),
        // Two people have this name.
        ("groups", json!({"name": "a", "members": ["Ann"]}), (400, "invalid_request")),
        ("groups", json!({"name": "a", "platform": true}), (400, "invalid_request")),
    ] {
        let answer = server.post(&format!("/api/{path}"), body.clone()).await;
        assert_eq!(refused(&answer), expected, "{path} {body}: {}", answer.1);
    }
    for (body, expected) in [
        (json!({"status": "invited"}), (400, "invalid_request")),
        (json!({"status": "gone"}), (400, "invalid_request")),
        (json!({"description": "x"}), (400, "invalid_request")),
        (json!({"nmae": "x"}), (400, "invalid_request")),
    ] {
        let answer = server.patch("/api/people/ann@example.com", body.clone()).await;
        assert_eq!(refused(&answer), expected, "{body}: {}", answer.1);
    }
}

#[tokio::test]
async fn what_a_person_does_belongs_to_the_person_whatever_the_credential() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let ann = Person::invite(&server, json!({"name": "Ann", "role": "caller"})).await;
    let bob = Person::invite(&server, json!({"name": "Bob", "role": "caller"})).await;
    let (token_id, token) = ann.token(&server, json!({})).await;
    let (_, reduced) = ann.token(&server, json!({"tools": ["echo"]})).await;
    let (_, viewer) = ann.token(&server, json!({"role": "viewer"})).await;
    let (_, of_bob) = bob.token(&server, json!({})).await;

    let (status, chat) = ann.send(&server, Method::POST, "/api/chats", json!({"title": "Mine"})).await;
    assert_eq!(status, 201, "{chat}");
    let chat = format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap());
    for (value, expected) in [(&token, 200), (&reduced, 404), (&viewer, 404), (&of_bob, 404)] {
        let found = with(&server, value, Method::GET, &chat, Value::Null).await;
        assert_eq!(found.0, expected, "{}", found.1);
    }
    assert_eq!(bob.get(&server, &chat).await.0, 404);

    for (value, args) in [(&token, 1), (&reduced, 2), (&of_bob, 3)] {
        let body = json!({"args": {"n": args}});
        let called = with(&server, value, Method::POST, "/api/tools/echo/invoke", body).await;
        assert_eq!((called.0, &called.1["ok"]), (200, &json!(true)), "{}", called.1);
    }
    let calls = async |value: &str| {
        let (_, list) = with(&server, value, Method::GET, "/api/calls", Value::Null).await;
        let calls = list["data"]["calls"].as_array().unwrap().clone();
        calls.iter().map(|call| call["args"]["n"].as_i64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        (calls(&token).await, calls(&reduced).await, calls(&of_bob).await),
        (vec![1], vec![2], vec![3])
    );
    // By name or by id, which also finds what reduced tokens have called.
    for (caller, expected) in [(&*ann.id, 2), ("Ann", 2), (&*bob.id, 1), (&*token_id, 0)] {
        let (_, found) = server.get(&format!("/api/calls?caller={caller}")).await;
        assert_eq!(found["data"]["calls"].as_array().unwrap().len(), expected, "{caller}: {found}");
    }
    let (_, all) = server.get("/api/calls").await;
    let first = &all["data"]["calls"][2];
    assert_eq!(
        (&first["caller"], &first["actor_id"], &first["token_id"]),
        (&json!("Ann"), &json!(ann.id), &json!(token_id))
    );
    // Nobody gives a token more than they have, and people see only their own tokens.
    for body in [json!({"name": "x", "role": "editor"}), json!({"name": "x", "elevated": true})] {
        assert_eq!(ann.send(&server, Method::POST, "/api/tokens", body).await.0, 403);
    }
    let answer = with(&server, &reduced, Method::POST, "/api/tokens", json!({"name": "x"})).await;
    assert_eq!(refused(&answer), (403, "forbidden"));
    let (_, own) = ann.get(&server, "/api/tokens").await;
    assert_eq!(own["data"]["total"], 3, "{own}");
    let path = format!("/api/tokens/{token_id}");
    assert_eq!(bob.send(&server, Method::DELETE, &path, Value::Null).await.0, 404);
    assert_eq!(server.post(&format!("{path}/rotate"), json!({})).await.0, 403);
    assert_eq!(ann.send(&server, Method::POST, &format!("{path}/rotate"), json!({})).await.0, 200);
    assert_eq!(with(&server, &token, Method::GET, "/api/session", Value::Null).await.0, 401);
    assert_eq!(ann.send(&server, Method::DELETE, &path, Value::Null).await.0, 200);
    // An admin creates no token in somebody else's name.
    let answer = server.post("/api/tokens", json!({"name": "x", "owner": ann.id})).await;
    assert_eq!(refused(&answer), (403, "forbidden"));
}

#[tokio::test]
async fn a_disabled_person_loses_everything_at_once() {
    let server = Server::start().await;
    server.create(function_tool("gate", "gate")).await;
    let ann = Person::invite(&server, json!({"name": "Ann", "role": "caller"})).await;
    let (_, token) = ann.token(&server, json!({})).await;
    let events = server.bare(Method::GET, "/api/events").bearer_auth(&token).send().await.unwrap();
    assert_eq!(events.status(), 200);
    let path = "/api/tools/gate/invoke?async=true";
    let queued = with(&server, &token, Method::POST, path, json!({"args": {}})).await;
    assert_eq!(queued.0, 202, "{}", queued.1);
    let call = format!("/api/calls/{}", queued.1["call_id"].as_str().unwrap());
    let direct = with(&server, &token, Method::POST, "/api/tools/gate/invoke", json!({"args": {}}));
    let disable = async {
        server.gate.entered(2).await;
        server.patch("/api/people/Ann", json!({"status": "disabled"})).await
    };
    let (direct, disabled) = tokio::join!(direct, disable);
    assert_eq!(
        (disabled.0, &disabled.1["data"]["status"], &disabled.1["data"]["sessions"]),
        (200, &json!("disabled"), &json!(0)),
        "{}",
        disabled.1
    );
    assert_eq!(code(&direct.1), "cancelled", "{}", direct.1);
    poll(async || (server.get(&call).await.1["data"]["status"] == "cancelled").then_some(())).await;
    // The stream ends: reading its text would otherwise never return.
    tokio::time::timeout(std::time::Duration::from_secs(30), events.text()).await.unwrap().unwrap();
    assert_eq!(ann.get(&server, "/api/session").await.0, 401);
    assert_eq!(with(&server, &token, Method::GET, "/api/session", Value::Null).await.0, 401);
    assert_eq!(server.post("/api/people/Ann/invitation", Value::Null).await.0, 409);
    let (_, audit) = server.get("/api/audit?action=person.disable").await;
    assert_eq!(audit["data"]["records"][0]["target"], "Ann", "{audit}");
    // The token works again, the session does not.
    assert_eq!(server.patch("/api/people/Ann", json!({"status": "active"})).await.0, 200);
    assert_eq!(with(&server, &token, Method::GET, "/api/session", Value::Null).await.0, 200);
    assert_eq!(ann.get(&server, "/api/session").await.0, 401);
    assert_eq!(server.delete("/api/people/Ann").await.0, 200);
    assert_eq!(with(&server, &token, Method::GET, "/api/session", Value::Null).await.0, 401);
    assert_eq!(server.get("/api/tokens").await.1["data"]["total"], 0);
}

#[tokio::test]
async fn a_queued_call_of_a_disabled_person_never_runs() {
    let server = Server::start().await;
    let mut tool = function_tool("confirm", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    Person::invite(&server, json!({"name": "Ann", "role": "caller"})).await;
    let ann = Person::invite(&server, json!({"name": "Bob", "role": "caller"})).await;
    let asked = ann.send(&server, Method::POST, "/api/tools/confirm/invoke", json!({"args": {}})).await;
    assert_eq!(asked.0, 202, "{}", asked.1);
    let approve = format!("/api/approvals/{}/approve", asked.1["approval_id"].as_str().unwrap());
    assert_eq!(server.patch("/api/people/Bob", json!({"status": "disabled"})).await.0, 200);
    server.post(&approve, json!({})).await;
    let call = format!("/api/calls/{}", asked.1["call_id"].as_str().unwrap());
    let call = poll(async || {
        let (_, call) = server.get(&call).await;
        let status = call["data"]["status"].as_str().unwrap().to_owned();
        (status != "awaiting_approval" && status != "pending" && status != "running").then_some(call)
    });
    assert_ne!(call.await["data"]["status"], "success");
}

#[tokio::test]
async fn two_credentials_of_a_person_are_one_pair_of_eyes() {
    let server = Server::start_with(|settings| settings.approvals.four_eyes = true).await;
    let mut tool = function_tool("pay", "echo");
    tool["policy"] = json!("elevated");
    server.create(tool).await;
    let ann = Person::invite(&server, json!({"name": "Ann", "role": "admin"})).await;
    let bob = Person::invite(&server, json!({"name": "Bob", "role": "admin"})).await;
    let body = json!({"owner": "me", "tools": ["pay"], "role": "caller"});
    let (_, reduced) = ann.token(&server, body).await;
    let asked = with(&server, &reduced, Method::POST, "/api/tools/pay/invoke", json!({"args": {}})).await;
    assert_eq!(asked.0, 202, "{}", asked.1);
    let approve = format!("/api/approvals/{}/approve", asked.1["approval_id"].as_str().unwrap());
    let own = ann.send(&server, Method::POST, &approve, json!({})).await;
    assert_eq!(own.0, 403, "{}", own.1);
    assert_eq!(bob.send(&server, Method::POST, &approve, json!({})).await.0, 200);
}

#[tokio::test]
async fn groups_add_rights_at_once_and_rules_know_them() {
    let server = Server::start().await;
    for name in ["echo", "pay"] {
        server.create(function_tool(name, "echo")).await;
    }
    let new = json!({"name": "Ann", "email": "ann@example.com", "role": "viewer", "tools": ["echo"]});
    let ann = Person::invite(&server, new).await;
    let pay = async || ann.send(&server, Method::POST, "/api/tools/pay/invoke", json!({"args": {}})).await;
    assert_eq!(pay().await.0, 403);
    let group =
        json!({"name": "finance", "role": "caller", "tools": ["pay"], "members": ["ann@example.com"]});
    let (status, group) = server.post("/api/groups", group).await;
    assert_eq!(status, 201, "{group}");
    let called = pay().await;
    assert_eq!((called.0, &called.1["ok"]), (200, &json!(true)), "{}", called.1);
    let (_, found) = server.get("/api/people/Ann").await;
    let found = &found["data"];
    assert_eq!(
        (&found["rights"]["role"], &found["rights"]["tools"], &found["membership"]["role"]),
        (&json!("caller"), &json!(["echo", "pay"]), &json!("viewer"))
    );
    assert_eq!(found["groups"][0]["name"], "finance");

    for (matching, when, expected) in [
        (json!({"people": ["*@example.com"]}), None, 403),
        (json!({"people": [ann.id]}), None, 403),
        (json!({"people": ["bob@example.com"]}), None, 200),
        (json!({"groups": ["fin*"]}), None, 403),
        (json!({"groups": ["sales"]}), None, 200),
        (json!({}), Some("'finance' in principal.groups && principal.person == 'ann@example.com'"), 403),
        // People choose the names of their tokens.
        (json!({"tokens": ["Ann"]}), None, 200),
    ] {
        let mut rule = json!({"name": "r", "match": matching, "effect": "deny"});
        if let Some(when) = when {
            rule["when"] = json!(when);
        }
        let (status, stored) = server.put("/api/policy", json!({"rules": [rule]})).await;
        assert_eq!(status, 200, "{stored}");
        assert_eq!(pay().await.0, expected, "{rule}");
    }
    server.put("/api/policy", json!({"rules": []})).await;
    let path = "/api/groups/finance";
    assert_eq!(server.patch(path, json!({"tools": []})).await.0, 200);
    assert_eq!(pay().await.0, 403);
    assert_eq!(server.patch(path, json!({"tools": null, "members": []})).await.0, 200);
    assert_eq!(pay().await.0, 403);
    assert_eq!(server.patch("/api/people/Ann", json!({"groups": ["finance"]})).await.0, 200);
    assert_eq!(pay().await.0, 200);
    assert_eq!(server.delete(path).await.0, 200);
    assert_eq!((pay().await.0, server.get(path).await.0), (403, 404));
}

#[tokio::test]
async fn service_accounts_have_tokens_but_no_login() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let account = json!({"name": "nightly", "description": "Sends reports", "tools": ["echo"]});
    let (status, account) = server.post("/api/service-accounts", account).await;
    assert_eq!((status, &account["data"]["status"]), (201, &json!("active")), "{account}");
    let id = account["data"]["id"].as_str().unwrap();
    let mut tokens = Vec::new();
    for owner in [id, "nightly"] {
        let (status, answer) = server.post("/api/tokens", json!({"name": "x", "owner": owner})).await;
        assert_eq!((status, &answer["data"]["actor"]["name"]), (201, &json!("nightly")), "{answer}");
        tokens.push(answer["data"]["token"].as_str().unwrap().to_owned());
    }
    for token in &tokens {
        let (_, session) = with(&server, token, Method::GET, "/api/session", Value::Null).await;
        let session = &session["data"];
        assert_eq!((&session["name"], &session["tools"]), (&json!("nightly"), &json!(["echo"])));
    }
    assert_eq!(server.get(&format!("/api/people/{id}")).await.0, 404);
    assert_eq!(server.post(&format!("/api/people/{id}/invitation"), Value::Null).await.0, 404);
    let (_, listed) = server.get(&format!("/api/tokens?actor={id}")).await;
    assert_eq!(listed["data"]["total"], 2);
    assert_eq!(server.patch("/api/service-accounts/nightly", json!({"status": "disabled"})).await.0, 200);
    for token in &tokens {
        assert_eq!(with(&server, token, Method::GET, "/api/session", Value::Null).await.0, 401);
    }
    assert_eq!(server.delete("/api/service-accounts/nightly").await.0, 200);
    assert_eq!(server.get("/api/tokens").await.1["data"]["total"], 0);
}

#[tokio::test]
async fn nobody_gets_more_through_people_and_groups_than_they_have() {
    let server = Server::start().await;
    let acme = tenant(&server, "acme").await;
    let plain = json!({"name": "plain", "role": "admin"});
    let (_, plain) = server.post("/api/tokens", plain).await;
    let plain = plain["data"]["token"].as_str().unwrap();
    let strong = json!({"name": "Strong", "role": "admin", "elevated": true, "platform": true});
    assert_eq!(server.post("/api/people", strong).await.0, 201);
    let group = json!({"name": "strong", "role": "admin", "elevated": true});
    assert_eq!(server.post("/api/groups", group).await.0, 201);
    assert_eq!(server.post("/api/people", json!({"name": "Weak"})).await.0, 201);
    let account = json!({"name": "strong", "role": "admin", "elevated": true});
    assert_eq!(server.post("/api/service-accounts", account).await.0, 201);
    let get = Method::GET;
    let (post, patch, delete) = (Method::POST, Method::PATCH, Method::DELETE);
    for (method, path, body) in [
        (&post, "people", json!({"name": "x", "elevated": true})),
        (&post, "people", json!({"name": "x", "role": "admin", "platform": true})),
        (&post, "people", json!({"name": "x", "groups": ["strong"]})),
        (&post, "people", json!({"name": "x", "tenant": "acme"})),
        (&post, "people/Strong/invitation", json!({})),
        (&patch, "people/Strong", json!({"email": "mine@example.com"})),
        (&patch, "people/Weak", json!({"elevated": true})),
        (&patch, "people/Weak", json!({"groups": ["strong"]})),
        (&delete, "people/Strong", json!({})),
        (&patch, "groups/strong", json!({"members": ["Weak"]})),
        (&post, "groups", json!({"name": "x", "elevated": true})),
        (&post, "tokens", json!({"name": "x", "owner": "strong"})),
        (&get, "people?tenant=acme", json!({})),
    ] {
        let answer = with(&server, plain, method.clone(), &format!("/api/{path}"), body.clone()).await;
        assert_eq!(refused(&answer), (403, "forbidden"), "{path} {body}: {}", answer.1);
    }
    // A person of two tenants: an admin of one changes the membership, not the person.
    let shared = json!({"name": "Shared", "email": "s@example.com"});
    assert_eq!(server.post("/api/people", shared.clone()).await.0, 201);
    let refused_there = with(&server, &acme, post.clone(), "/api/people", shared.clone()).await;
    assert_eq!(refused(&refused_there), (409, "conflict"));
    let mut there = shared;
    there["tenant"] = json!("acme");
    assert_eq!(server.post("/api/people", there).await.0, 201);
    let path = "/api/people/s@example.com";
    for (body, expected) in
        [(json!({"status": "disabled"}), 403), (json!({"name": "x"}), 403), (json!({"role": "editor"}), 200)]
    {
        assert_eq!(with(&server, &acme, patch.clone(), path, body).await.0, expected);
    }
    assert_eq!(with(&server, &acme, delete, path, Value::Null).await.0, 200);
    assert_eq!(server.get(path).await.1["data"]["membership"]["role"], "caller");
    // People who are no admins see no people, and nobody disables themselves.
    let ann = Person::invite(&server, json!({"name": "Ann", "role": "editor"})).await;
    for path in ["people", "service-accounts", "groups"] {
        assert_eq!(ann.get(&server, &format!("/api/{path}")).await.0, 403);
    }
    let boss = Person::invite(&server, json!({"name": "Boss", "role": "admin"})).await;
    let body = json!({"status": "disabled"});
    assert_eq!(boss.send(&server, patch, "/api/people/Boss", body).await.0, 409);
}

#[tokio::test]
async fn chats_are_handed_over() {
    let server = Server::start().await;
    let ann = Person::invite(&server, json!({"name": "Ann"})).await;
    let bob = Person::invite(&server, json!({"name": "Bob"})).await;
    let (_, chat) = ann.send(&server, Method::POST, "/api/chats", json!({"title": "Mine"})).await;
    let chat = format!("/api/chats/{}", chat["data"]["id"].as_str().unwrap());
    let done = server.post("/api/people/Ann/hand-over", json!({"to": "Bob"})).await;
    assert_eq!((done.0, &done.1["data"]), (200, &json!({"chats": 1, "service_accounts": 0})));
    assert_eq!((ann.get(&server, &chat).await.0, bob.get(&server, &chat).await.0), (404, 200));
    assert_eq!(server.post("/api/people/Ann/hand-over", json!({"to": "Ann"})).await.0, 400);
}
