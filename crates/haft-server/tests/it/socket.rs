//! `/ws`: a conversation over a WebSocket.

use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::agents::{create, scripted, token, with_helper};
use crate::harness::{Server, function_tool, poll};
use crate::tenants::tenant;

/// An open socket.
pub(crate) struct Socket(WebSocketStream<TcpStream>);

fn request(server: &Server, query: &str, headers: &[(&'static str, &str)]) -> Request<()> {
    let mut request = format!("ws://{}/ws{query}", server.addr).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, HeaderValue::from_str(value).unwrap());
    }
    request
}

impl Socket {
    pub(crate) async fn open(server: &Server, token: &str) -> Self {
        Self::try_open(server, &format!("?token={token}"), &[]).await.unwrap()
    }

    /// Opens a socket, or returns the status of the rejection.
    async fn try_open(server: &Server, query: &str, headers: &[(&'static str, &str)]) -> Result<Self, u16> {
        let stream = TcpStream::connect(server.addr).await.unwrap();
        match client_async(request(server, query, headers), stream).await {
            Ok((socket, _)) => Ok(Self(socket)),
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    pub(crate) async fn send(&mut self, frame: Value) {
        self.0.send(Message::text(frame.to_string())).await.unwrap();
    }

    /// Returns the next frame; `None` after the close.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let waiting = tokio::time::timeout(Duration::from_secs(30), self.0.next());
            match waiting.await.unwrap()?.ok()? {
                Message::Text(text) => return Some(serde_json::from_str(&text).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    /// Returns the code of the close.
    async fn closed(&mut self) -> u16 {
        loop {
            let waiting = tokio::time::timeout(Duration::from_secs(30), self.0.next());
            match waiting.await.unwrap() {
                Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
                Some(Ok(_)) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Returns the frames up to one of a type.
    pub(crate) async fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("closed before `{kind}`: {frames:?}"));
            let is_last = frame["type"] == kind;
            frames.push(frame);
            if is_last {
                return frames;
            }
        }
    }
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = frames.iter().map(|frame| frame["type"].as_str().unwrap()).collect();
    kinds.dedup();
    kinds
}

fn text(frames: &[Value]) -> String {
    let texts = frames.iter().filter(|frame| frame["type"] == "text");
    texts.map(|frame| frame["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_message_is_answered_with_tool_events() {
    let server = with_helper().await;
    let mut socket = Socket::open(&server, &server.token).await;
    socket.send(json!({"type": "message", "content": "double it"})).await;
    let frames = socket.until("end").await;
    assert_eq!(kinds(&frames), ["start", "text", "tool_use", "text", "end"], "{frames:?}");
    assert_eq!(text(&frames), "One moment.It is 42.");
    let start = &frames[0];
    assert_eq!(start["agent"], "helper");
    let calls: Vec<&Value> = frames.iter().filter(|frame| frame["type"] == "tool_use").collect();
    let statuses: Vec<&Value> = calls.iter().map(|call| &call["status"]).collect();
    assert_eq!(statuses, ["running", "success"], "{calls:?}");
    assert_eq!((&calls[1]["output"], &calls[1]["args"]), (&json!(42), &json!({"n": 21})), "{calls:?}");
    assert!(calls[1]["duration_ms"].is_number() && calls[1]["call_id"].is_string(), "{calls:?}");
    let end = frames.last().unwrap();
    assert_eq!((&end["status"], &end["output"]), (&json!("success"), &json!("It is 42.")), "{end}");
    assert_eq!((&end["chat_id"], &end["message_id"]), (&start["chat_id"], &start["message_id"]));

    // The chat is a chat like every other.
    let chat = start["chat_id"].as_str().unwrap();
    socket.send(json!({"type": "message", "content": "hello", "chat_id": chat})).await;
    let frames = socket.until("end").await;
    assert_eq!(text(&frames), "Hello!");
    let (_, messages) = server.get(&format!("/api/chats/{chat}/messages")).await;
    let roles: Vec<&Value> =
        messages["data"]["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant"]);
    let (_, runs) = server.get(&format!("/api/runs?chat_id={chat}")).await;
    assert_eq!(runs["data"]["runs"][0]["surface"], "ws", "{runs}");
}

#[tokio::test]
async fn wrong_frames_are_answered_and_the_socket_stays_open() {
    let server = with_helper().await;
    let mut socket = Socket::open(&server, &server.token).await;
    let unknown = "018faf50-b7b6-7a01-9a05-a22a6e0af101";
    for (frame, code) in [
        (json!("x"), "invalid_request"),
        (json!({"type": "dance"}), "invalid_request"),
        (json!({"type": "message"}), "invalid_request"),
        (json!({"type": "message", "content": 1}), "invalid_request"),
        (json!({"type": "message", "content": "x", "agent": "nobody"}), "not_found"),
        (json!({"type": "message", "content": "x", "chat_id": unknown}), "not_found"),
        (json!({"type": "stop", "chat_id": unknown}), "not_found"),
        (json!({"type": "approval_response", "approval_id": unknown, "approved": true}), "not_found"),
    ] {
        socket.send(frame.clone()).await;
        let answer = socket.next().await.unwrap();
        assert_eq!((&answer["type"], &answer["code"]), (&json!("error"), &json!(code)), "{frame}: {answer}");
    }
    socket.0.send(Message::binary(vec![1, 2, 3])).await.unwrap();
    assert_eq!(socket.next().await.unwrap()["code"], "invalid_request");
    socket.send(json!({"type": "ping"})).await;
    assert_eq!(socket.next().await.unwrap(), json!({"type": "pong"}));
    // No empty chat is left of a message that was rejected.
    assert_eq!(server.get("/api/chats").await.1["data"]["chats"], json!([]));
    socket.0.send(Message::text("x".repeat((1 << 20) + 1))).await.unwrap();
    assert_eq!(socket.closed().await, 1009);
}

#[tokio::test]
async fn approvals_are_decided_in_the_conversation() {
    let server = Server::start().await;
    let mut tool = function_tool("deploy", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    let script = "
turns:
  - when: {tool: deploy, failed: true}
    text: Not deployed.
  - when: {tool: deploy}
    text: 'Deployed to {{result.to}}.'
  - calls: [{tool: deploy, arguments: {to: staging}}]
";
    create(&server, scripted("deployer", &["deploy"], script)).await;
    let mut socket = Socket::open(&server, &server.token).await;
    for (decision, expected) in [
        (json!({"approved": true}), "Deployed to staging."),
        (json!({"approved": true, "args": {"to": "production"}}), "Deployed to production."),
        (json!({"approved": false, "reason": "not today"}), "Not deployed."),
    ] {
        socket.send(json!({"type": "message", "content": "deploy"})).await;
        let asked = socket.until("approval_request").await.pop().unwrap();
        assert_eq!(
            (&asked["args"], &asked["tool"]),
            (&json!({"to": "staging"}), &json!("user-created:deploy@1.0.0"))
        );
        let mut frame = json!({"type": "approval_response", "approval_id": asked["approval_id"]});
        frame.as_object_mut().unwrap().extend(decision.as_object().unwrap().clone());
        socket.send(frame).await;
        let frames = socket.until("end").await;
        let decided = frames.iter().filter(|frame| frame["type"] == "approval_decided").collect::<Vec<_>>();
        assert_eq!(decided.len(), 1, "{frames:?}");
        assert_eq!(decided[0]["approved"], decision["approved"]);
        assert_eq!(text(&frames), expected, "{frames:?}");
    }
    let (_, audit) = server.get("/api/audit?action=approval.approve").await;
    assert_eq!(audit["data"]["total"], 2, "{audit}");
}

#[tokio::test]
async fn an_answer_can_be_stopped_and_outlives_its_socket() {
    let server = Server::start().await;
    server.create(function_tool("gated", "gate")).await;
    let script = "turns: [{when: {tool: gated}, text: Done}, {calls: [{tool: gated, arguments: {}}]}]";
    create(&server, scripted("slow", &["gated"], script)).await;
    let mut socket = Socket::open(&server, &server.token).await;
    socket.send(json!({"type": "message", "content": "go"})).await;
    let chat = socket.next().await.unwrap()["chat_id"].clone();
    server.gate.entered(1).await;
    socket.send(json!({"type": "message", "content": "more", "chat_id": chat})).await;
    let frames = socket.until("error").await;
    assert_eq!(frames.last().unwrap()["code"], "conflict", "{frames:?}");
    socket.send(json!({"type": "stop", "chat_id": chat})).await;
    let end = socket.until("end").await.pop().unwrap();
    assert_eq!(end["status"], "cancelled", "{end}");

    socket.send(json!({"type": "message", "content": "go"})).await;
    let start = socket.until("start").await.pop().unwrap();
    server.gate.entered(2).await;
    drop(socket);
    server.gate.open();
    let path = format!("/api/runs/{}", start["run_id"].as_str().unwrap());
    let output = poll(async || {
        let (_, run) = server.get(&path).await;
        (run["data"]["status"] == "success").then(|| run["data"]["output"].clone())
    });
    assert_eq!(output.await, "Done");
}

#[tokio::test]
async fn who_may_open_a_socket() {
    let server = with_helper().await;
    let caller = token(&server, "caller").await;
    let bearer = format!("Bearer {caller}");
    let own = format!("http://{}", server.addr);
    let query = format!("?token={caller}");
    let viewer = format!("?token={}", token(&server, "viewer").await);
    for (query, headers, expected) in [
        ("", vec![], Some(401)),
        ("?token=wrong", vec![], Some(401)),
        ("", vec![("authorization", "Bearer wrong")], Some(401)),
        (viewer.as_str(), vec![], Some(403)),
        (&query, vec![("origin", "https://evil.example")], Some(403)),
        ("", vec![("authorization", bearer.as_str()), ("origin", "null")], Some(403)),
        (&query, vec![("origin", own.as_str())], None),
        ("", vec![("authorization", bearer.as_str())], None),
    ] {
        let opened = Socket::try_open(&server, query, &headers).await;
        assert_eq!(opened.err(), expected, "{query} {headers:?}");
    }
    let (status, answer) = server.get("/ws").await;
    assert_eq!(status, 400, "not a WebSocket: {answer}");

    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let form = client.build().unwrap().post(server.url("/login")).header("sec-fetch-site", "same-origin");
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let login = form.body(format!("token={caller}")).send().await.unwrap();
    let cookie = login.headers()["set-cookie"].to_str().unwrap().split(';').next().unwrap().to_owned();
    for (origin, expected) in
        [(None, Some(403)), (Some("https://evil.example"), Some(403)), (Some(&*own), None)]
    {
        let mut headers = vec![("cookie", cookie.as_str())];
        headers.extend(origin.map(|origin| ("origin", origin)));
        let opened = Socket::try_open(&server, "", &headers).await;
        assert_eq!(opened.err(), expected, "{origin:?}");
    }
}

#[tokio::test]
async fn configured_origins_may_open_a_socket() {
    let origin = "https://app.example";
    let server = Server::start_with(|settings| settings.server.cors_origins = vec![origin.to_owned()]).await;
    let query = format!("?token={}", server.token);
    assert!(Socket::try_open(&server, &query, &[("origin", origin)]).await.is_ok());
    let other = Socket::try_open(&server, &query, &[("origin", "https://other.example")]).await;
    assert_eq!(other.err(), Some(403));
}

#[tokio::test]
async fn a_revoked_token_and_a_stopping_server_close_the_socket() {
    let mut server = with_helper().await;
    let (_, created) = server.post("/api/tokens", json!({"name": "short", "role": "caller"})).await;
    let mut socket = Socket::open(&server, created["data"]["token"].as_str().unwrap()).await;
    socket.send(json!({"type": "ping"})).await;
    assert_eq!(socket.next().await.unwrap()["type"], "pong");
    let path = format!("/api/tokens/{}", created["data"]["id"].as_str().unwrap());
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(socket.closed().await, 1008);

    let mut socket = Socket::open(&server, &server.token).await;
    let (closed, ()) = tokio::join!(socket.closed(), server.halt());
    assert_eq!(closed, 1001);
}

#[tokio::test]
async fn sockets_see_nothing_of_other_tenants() {
    let server = with_helper().await;
    let (_, chat) = server.post("/api/chats", json!({"agent": "helper"})).await;
    let chat = &chat["data"]["id"];
    let other = tenant(&server, "acme").await;
    let mut socket = Socket::open(&server, &other).await;
    for frame in [
        json!({"type": "message", "content": "x"}),
        json!({"type": "message", "content": "x", "agent": "helper"}),
        json!({"type": "message", "content": "x", "chat_id": chat}),
        json!({"type": "stop", "chat_id": chat}),
    ] {
        socket.send(frame.clone()).await;
        let answer = socket.next().await.unwrap();
        assert_eq!(answer["type"], "error", "{frame}: {answer}");
        let code = answer["code"].as_str().unwrap();
        assert!(["not_found", "invalid_request"].contains(&code), "{frame}: {answer}");
    }
    // A colleague does not write to the chat of somebody else.
    let caller = token(&server, "caller").await;
    let mut socket = Socket::open(&server, &caller).await;
    socket.send(json!({"type": "message", "content": "x", "chat_id": chat})).await;
    assert_eq!(socket.next().await.unwrap()["code"], "not_found");
}

#[tokio::test]
async fn a_close_frame_is_answered_by_one() {
    let server = Server::start().await;
    let mut socket = Socket::open(&server, &server.token).await;
    socket.0.send(Message::Close(None)).await.unwrap();
    let answer = tokio::time::timeout(Duration::from_secs(10), socket.0.next()).await.unwrap();
    assert!(matches!(answer, Some(Ok(Message::Close(_)))), "{answer:?}");
}
