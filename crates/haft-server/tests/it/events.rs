//! `GET /api/events`: what a page sees live.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::socket::Socket;
use crate::tenants::{tenant, with};

/// An open stream.
pub(crate) struct Events {
    response: reqwest::Response,
    text: String,
}

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Received {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Events {
    pub(crate) async fn open(server: &Server, token: &str, path: &str, last: Option<&str>) -> Self {
        let mut request = server.bare(Method::GET, path).bearer_auth(token);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        Self::of(request).await
    }

    async fn of(request: reqwest::RequestBuilder) -> Self {
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new() }
    }

    /// Reads the next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Received> {
        tokio::time::timeout(Duration::from_secs(20), self.read()).await.unwrap()
    }

    async fn read(&mut self) -> Option<Received> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    let line = event.lines().find_map(|line| line.strip_prefix(&format!("{name}:")));
                    line.map(|text| text.trim().to_owned())
                };
                let received = field("event").map(|name| Received {
                    id: field("id").unwrap_or_default(),
                    name,
                    data: serde_json::from_str(&field("data").unwrap_or_default()).unwrap_or_default(),
                });
                self.text = String::from(rest);
                match received {
                    Some(received) => return Some(received),
                    // A comment that keeps the connection alive.
                    None => continue,
                }
            }
            let chunk = self.response.chunk().await.ok().flatten()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Reads the next event of a name.
    pub(crate) async fn named(&mut self, name: &str) -> Received {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("the stream ended before `{name}`"));
            if event.name == name {
                return event;
            }
        }
    }
}

async fn token(server: &Server, body: Value) -> (String, String) {
    let (status, made) = server.post("/api/tokens", body).await;
    assert_eq!(status, 201, "{made}");
    let text = |name: &str| made["data"][name].as_str().unwrap().to_owned();
    (text("id"), text("token"))
}

#[tokio::test]
async fn changes_of_tools_and_bundles_are_events() {
    let server = Server::start().await;
    let mut events = Events::open(&server, &server.token, "/api/events?topics=tools,bundles", None).await;
    assert_eq!(events.next().await.unwrap().name, "ready");
    let tool = server.create(function_tool("weather", "echo")).await;
    let bundle = events.next().await.unwrap();
    assert_eq!((bundle.name.as_str(), &bundle.data["change"]), ("bundle", &json!("created")), "{bundle:?}");
    let created = events.next().await.unwrap();
    assert_eq!(created.name, "tool");
    assert_eq!(
        created.data,
        json!({"change": "created", "id": tool["id"], "name": "weather", "bundle": "user-created",
               "version": "1.0.0", "status": "draft", "enabled": true})
    );
    let path = "/api/tools/weather";
    assert_eq!(server.post(&format!("{path}/publish"), json!({})).await.0, 200);
    assert_eq!(events.named("tool").await.data["change"], "published");
    assert_eq!(server.patch(path, json!({"enabled": false})).await.0, 200);
    let disabled = events.named("tool").await;
    assert_eq!((&disabled.data["change"], &disabled.data["enabled"]), (&json!("disabled"), &json!(false)));
    let mut changed = function_tool("weather", "echo");
    changed["description"] = json!("Another one");
    assert_eq!(server.put(path, changed).await.0, 200);
    assert_eq!(events.named("tool").await.data["change"], "updated");
    assert_eq!(server.delete(path).await.0, 200);
    let deleted = events.named("tool").await;
    assert_eq!((&deleted.data["change"], &deleted.data["name"]), (&json!("deleted"), &json!("weather")));
}

#[tokio::test]
async fn callers_see_their_own_calls_and_approvals() {
    let server = Server::start().await;
    let mut guarded = function_tool("guarded", "echo");
    guarded["requires_confirmation"] = json!(true);
    server.create(guarded).await;
    server.create(function_tool("open", "echo")).await;
    let (_, agent) = token(&server, json!({"name": "agent"})).await;
    let (_, other) = token(&server, json!({"name": "other"})).await;
    let stranger = tenant(&server, "acme").await;
    let path = "/api/events?topics=calls,approvals";
    let mut of_admin = Events::open(&server, &server.token, path, None).await;
    let mut of_agent = Events::open(&server, &agent, path, None).await;
    let mut of_other = Events::open(&server, &other, path, None).await;
    let mut of_stranger = Events::open(&server, &stranger, path, None).await;
    let answer = with(&server, &agent, Method::POST, "/api/tools/guarded/invoke", json!({})).await.1;
    let approval = answer["approval_id"].as_str().unwrap();
    for events in [&mut of_admin, &mut of_agent] {
        let event = events.named("approval").await;
        assert_eq!(
            (&event.data["change"], &event.data["id"], &event.data["call_id"]),
            (&json!("requested"), &json!(approval), &answer["call_id"]),
        );
        assert_eq!(events.named("call").await.data["status"], "awaiting_approval");
    }
    let path = format!("/api/approvals/{approval}/approve");
    assert_eq!(server.post(&path, json!({})).await.0, 200);
    for events in [&mut of_admin, &mut of_agent] {
        let decided = events.named("approval").await;
        let found = (&decided.data["change"], &decided.data["status"], &decided.data["decided_by"]);
        assert_eq!(found, (&json!("decided"), &json!("approved"), &json!("local")));
        let mut statuses = Vec::new();
        while statuses.last() != Some(&json!("success")) {
            let call = events.named("call").await;
            assert_eq!(call.data["id"], answer["call_id"]);
            statuses.push(call.data["status"].clone());
        }
        assert!(statuses.contains(&json!("running")), "{statuses:?}");
    }
    // A direct call has one event: its end.
    let call = with(&server, &other, Method::POST, "/api/tools/open/invoke", json!({})).await.1;
    for events in [&mut of_admin, &mut of_other] {
        let ended = events.named("call").await;
        assert_eq!((&ended.data["id"], &ended.data["caller"]), (&call["call_id"], &json!("other")));
        assert!(ended.data["duration_ms"].is_number(), "{ended:?}");
        assert!(!ended.data.to_string().contains("args"), "{ended:?}");
    }
    let own = with(&server, &stranger, Method::POST, "/api/tools/hello/invoke", json!({})).await.1;
    assert_eq!(
        of_stranger.named("call").await.data["id"],
        own["call_id"],
        "nothing of the other tenant before"
    );
    let last = with(&server, &agent, Method::POST, "/api/tools/open/invoke", json!({})).await.1;
    assert_eq!(
        of_agent.named("call").await.data["id"],
        last["call_id"],
        "nothing of the other caller before"
    );
}

#[tokio::test]
async fn a_stream_resumes_or_is_reset() {
    let server = Server::start().await;
    server.create(function_tool("open", "echo")).await;
    let path = "/api/events?topics=calls";
    let mut events = Events::open(&server, &server.token, path, None).await;
    let ready = events.named("ready").await;
    drop(events);
    let first = server.invoke("open", json!({})).await.1;
    let second = server.invoke("open", json!({})).await.1;
    let mut events = Events::open(&server, &server.token, path, Some(&ready.id)).await;
    events.named("ready").await;
    let resumed = events.next().await.unwrap();
    assert_eq!(resumed.data["id"], first["call_id"]);
    assert_eq!(events.next().await.unwrap().data["id"], second["call_id"]);
    let mut events = Events::open(&server, &server.token, path, Some(&resumed.id)).await;
    events.named("ready").await;
    assert_eq!(events.next().await.unwrap().data["id"], second["call_id"]);
    for id in ["0123456789ab-3", "nonsense"] {
        let mut events = Events::open(&server, &server.token, path, Some(id)).await;
        events.named("ready").await;
        assert_eq!(events.next().await.unwrap().name, "reset", "{id}");
    }
    let request = server.request(Method::GET, "/api/events?topics=calls,jobs");
    let (status, answer) = send(request).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("`jobs`"), "{answer}");
}

#[tokio::test]
async fn a_slow_client_is_reset() {
    let server = Server::start().await;
    server.create(function_tool("open", "echo")).await;
    let mut events = Events::open(&server, &server.token, "/api/events?topics=calls", None).await;
    let ready = events.named("ready").await;
    drop(events);
    for _ in 0..1030 {
        assert_eq!(server.invoke("open", json!({})).await.0, 200);
    }
    let mut events = Events::open(&server, &server.token, "/api/events?topics=calls", Some(&ready.id)).await;
    events.named("ready").await;
    assert_eq!(events.next().await.unwrap().name, "reset");
    let call = server.invoke("open", json!({})).await.1;
    assert_eq!(events.next().await.unwrap().data["id"], call["call_id"]);
}

#[tokio::test]
async fn a_revoked_token_closes_its_streams() {
    let server = Server::start().await;
    server.create(function_tool("slow", "gate")).await;
    let (id, agent) = token(&server, json!({"name": "agent"})).await;
    let call = with(&server, &agent, Method::POST, "/api/tools/slow/invoke?async=true", json!({})).await.1;
    server.gate.entered(1).await;
    let mut events = Events::open(&server, &agent, "/api/events", None).await;
    events.named("ready").await;
    let path = format!("/api/calls/{}/events", call["call_id"].as_str().unwrap());
    let mut of_call = Events::open(&server, &agent, &path, None).await;
    of_call.named("status").await;
    assert_eq!(server.delete(&format!("/api/tokens/{id}")).await.0, 200);
    let ended = async {
        while events.next().await.is_some() {}
        while of_call.next().await.is_some() {}
    };
    tokio::time::timeout(Duration::from_secs(3), ended).await.unwrap();
    server.gate.open();
}

#[tokio::test]
async fn a_logged_out_session_closes_its_streams() {
    let server = Server::start().await;
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    let form = client
        .post(server.url("/login"))
        .header("sec-fetch-site", "same-origin")
        .header("content-type", "application/x-www-form-urlencoded")
        .body(format!("token={}", server.token));
    let response = form.send().await.unwrap();
    let cookie = response.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    let request = client.get(server.url("/api/events")).header("cookie", &cookie);
    let mut events = Events::of(request).await;
    events.named("ready").await;
    let logout = client.post(server.url("/logout")).header("cookie", &cookie);
    let logout = logout.header("sec-fetch-site", "same-origin").send().await.unwrap();
    assert!(logout.status().as_u16() < 400, "{}", logout.status());
    let ended = async { while events.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(3), ended).await.unwrap();
}

#[tokio::test]
async fn a_stopping_server_ends_its_streams() {
    let mut server = Server::start().await;
    let mut events = Events::open(&server, &server.token, "/api/events", None).await;
    events.named("ready").await;
    let stopped = tokio::time::timeout(Duration::from_secs(10), server.halt());
    stopped.await.unwrap();
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn one_token_leaves_streams_to_others() {
    let server = Server::start_with(|settings| {
        settings.server.max_streams_per_token = 2;
        settings.server.max_streams_per_address = 4;
    })
    .await;
    let (_, one) = token(&server, json!({"name": "one"})).await;
    let (_, two) = token(&server, json!({"name": "two"})).await;
    let refused = async |token: &str| {
        let (status, answer) = send(server.bare(Method::GET, "/api/events").bearer_auth(token)).await;
        assert_eq!((status, code(&answer)), (503, "overloaded"), "{answer}");
        answer["error"]["message"].as_str().unwrap().to_owned()
    };
    let open = async |token: &str| Events::open(&server, token, "/api/events", None).await;
    let (first, _second) = (open(&one).await, open(&one).await);
    insta::assert_snapshot!(refused(&one).await, @"2 streams and sockets of your token are open, which is the limit (`server.max_streams_per_token`); close one, or retry later");
    // A socket counts as well.
    let socket = Socket::open(&server, &two).await;
    let _third = open(&two).await;
    insta::assert_snapshot!(refused(&server.token).await, @"4 streams and sockets of your address are open, which is the limit (`server.max_streams_per_address`); close one, or retry later");
    // Closed streams no longer count.
    drop((first, socket));
    let again = async || {
        let request = server.bare(Method::GET, "/api/events").bearer_auth(&one);
        let response = request.send().await.unwrap();
        (response.status() == 200).then_some(response)
    };
    poll(again).await;
}
