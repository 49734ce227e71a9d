//! Webhooks: what receivers get, and what happens if they do not take it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use haft_core::secret::Secret;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::response::{IntoResponse as _, Redirect};
use haft_testkit::upstream::axum::routing::post;
use haft_testkit::upstream::{SeenRequest, Upstream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Server, code, function_tool, poll, send};
use crate::tenants::with;

/// The page whose verification snippet receivers copy.
const GUIDE: &str = include_str!("../../../../docs/webhooks.md");

/// A receiver that rejects the first requests.
async fn receiver(failures: usize) -> Upstream {
    let left = Arc::new(AtomicUsize::new(failures));
    let receive = move || {
        let left = Arc::clone(&left);
        async move {
            let failed = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
            if failed.is_ok() { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::NO_CONTENT }
        }
    };
    Upstream::serve(Router::new().route("/hook", post(receive))).await.unwrap()
}

fn url(upstream: &Upstream) -> String {
    format!("http://{}/hook", upstream.address)
}

/// Starts a server that does not wait long before it tries again.
async fn start() -> Server {
    Server::start_with(|settings| settings.webhooks.retry_delays = vec![Duration::from_millis(50); 2]).await
}

/// Creates a webhook; returns its id and its secret.
async fn create(server: &Server, body: Value) -> (String, String) {
    let (status, made) = server.post("/api/webhooks", body).await;
    assert_eq!(status, 201, "{made}");
    let text = |name: &str| made["data"][name].as_str().unwrap().to_owned();
    (text("id"), text("secret"))
}

/// Waits until the receiver has seen a number of requests.
async fn received(upstream: &Upstream, count: usize) -> Vec<SeenRequest> {
    poll(async || Some(upstream.seen()).filter(|seen| seen.len() >= count)).await
}

/// Runs the snippet of the guide with a request.
#[expect(clippy::disallowed_methods, reason = "the snippet is under test")]
fn verify(secret: &str, request: &SeenRequest) -> bool {
    let snippet = GUIDE.split("```python\n").nth(1).unwrap().split("```").next().unwrap();
    let script = format!(
        "{snippet}\nimport json, sys\nrequest = json.load(sys.stdin)\n\
         sys.exit(0 if verify(request['secret'], request['headers'], request['body'].encode()) else 1)\n"
    );
    let input = json!({"secret": secret, "headers": request.headers, "body": request.body}).to_string();
    let mut child = std::process::Command::new("python3")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), input.as_bytes()).unwrap();
    child.wait().unwrap().success()
}

#[tokio::test]
async fn events_are_signed_as_the_guide_verifies_them() {
    let (server, upstream) = (start().await, receiver(0).await);
    let (id, secret) = create(&server, json!({"url": url(&upstream), "events": ["call.finished"]})).await;
    server.create(function_tool("open", "echo")).await;
    let call = server.invoke("open", json!({"n": 1})).await.1;
    let seen = received(&upstream, 1).await;
    let request = &seen[0];
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        (&body["type"], &body["data"]["call_id"]),
        (&json!("call.finished"), &call["call_id"]),
        "{body}"
    );
    assert_eq!(body["data"]["status"], "success");
    assert_eq!(body["data"]["value"], json!({"n": 1}));
    assert!(body["data"]["args"].is_null(), "{body}");
    assert!(verify(&secret, request));
    let changed = SeenRequest { body: request.body.replace("success", "failure"), ..request.clone() };
    assert!(!verify(&secret, &changed));
    assert!(!verify("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", request));
    let path = format!("/api/webhooks/{id}/deliveries?status=delivered");
    let list = poll(async || {
        let (_, list) = server.get(&path).await;
        Some(list["data"].clone()).filter(|list| list["total"] == 1)
    })
    .await;
    let delivery = &list["deliveries"][0];
    assert_eq!(delivery["id"], request.headers["webhook-id"]);
    assert_eq!((&delivery["response_status"], &delivery["attempts"]), (&json!(204), &json!(1)));
    assert!(!server.get("/api/webhooks").await.1.to_string().contains("whsec_"));
}

#[tokio::test]
async fn a_failed_delivery_is_tried_again_until_it_fails_for_good() {
    let (server, upstream) = (start().await, receiver(2).await);
    let (id, _) = create(&server, json!({"url": url(&upstream), "events": ["call.finished"]})).await;
    server.create(function_tool("open", "echo")).await;
    server.invoke("open", json!({})).await;
    let seen = received(&upstream, 3).await;
    let ids: Vec<&String> = seen.iter().map(|request| &request.headers["webhook-id"]).collect();
    assert!(ids.iter().all(|id| *id == ids[0]), "an attempt repeats the id: {ids:?}");
    let deliveries = async |status: &str| {
        let path = format!("/api/webhooks/{id}/deliveries?status={status}");
        poll(async || {
            let (_, list) = server.get(&path).await;
            Some(list["data"]["deliveries"][0].clone()).filter(Value::is_object)
        })
        .await
    };
    assert_eq!(deliveries("delivered").await["attempts"], 3);
    // Nobody listens at the new address.
    let patch = json!({"url": "http://127.0.0.1:9/hook"});
    assert_eq!(server.patch(&format!("/api/webhooks/{id}"), patch).await.0, 200);
    server.invoke("open", json!({})).await;
    let failed = deliveries("failed").await;
    assert_eq!((&failed["attempts"], &failed["response_status"]), (&json!(3), &json!(null)));
    assert!(failed["error"].as_str().unwrap().starts_with("cannot connect"), "{failed}");
    assert_eq!(server.patch(&format!("/api/webhooks/{id}"), json!({"url": url(&upstream)})).await.0, 200);
    let path = format!("/api/webhooks/{id}/deliveries/{}/redeliver", failed["id"].as_str().unwrap());
    assert_eq!(server.post(&path, json!({})).await.0, 200);
    let again = received(&upstream, 4).await;
    assert_eq!(again[3].headers["webhook-id"], failed["id"]);
}

#[tokio::test]
async fn approvals_and_tools_are_selected() {
    let (server, upstream) = (start().await, receiver(0).await);
    let events = json!(["approval.requested", "approval.decided", "call.finished"]);
    create(&server, json!({"url": url(&upstream), "events": events, "tools": ["user-created:guard*"]})).await;
    let mut tool = function_tool("guarded", "echo");
    tool["requires_confirmation"] = json!(true);
    server.create(tool).await;
    server.create(function_tool("open", "echo")).await;
    let (_, made) = server.post("/api/tokens", json!({"name": "agent"})).await;
    let agent = made["data"]["token"].as_str().unwrap();
    server.invoke("open", json!({})).await;
    let body = json!({"args": {"key": "sesame-argument"}});
    let answer = with(&server, agent, Method::POST, "/api/tools/guarded/invoke", body).await.1;
    let path = format!("/api/approvals/{}/deny", answer["approval_id"].as_str().unwrap());
    assert_eq!(server.post(&path, json!({"reason": "not today"})).await.0, 200);
    let seen = received(&upstream, 3).await;
    let mut bodies: Vec<Value> = seen.iter().map(|seen| serde_json::from_str(&seen.body).unwrap()).collect();
    bodies.sort_by_key(|body| body["type"].as_str().unwrap().to_owned());
    let found: Vec<_> =
        bodies.iter().map(|body| (body["type"].as_str().unwrap(), body["data"]["status"].clone())).collect();
    let expected = [
        ("approval.decided", json!("denied")),
        ("approval.requested", json!("waiting")),
        ("call.finished", json!("denied")),
    ];
    assert_eq!(found, expected);
    assert!(bodies.iter().all(|body| body["data"]["call_id"] == answer["call_id"]), "{bodies:?}");
    assert!(!format!("{seen:?}").contains("sesame-argument"), "arguments may be secret");
}

#[tokio::test]
async fn a_call_has_a_webhook_of_its_own() {
    let (server, upstream) = (start().await, receiver(0).await);
    server.create(function_tool("slow", "gate")).await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let body = json!({"webhook": {"url": url(&upstream), "secret": secret}});
    let (status, answer) = server.post("/api/tools/slow/invoke", body.clone()).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "{answer}");
    let path = "/api/tools/slow/invoke?async=true";
    let (status, first) = server.post(path, body).await;
    assert_eq!(status, 202, "{first}");
    assert!(first["webhook"]["secret"].is_null(), "{first}");
    let (_, second) = server.post(path, json!({"webhook": {"url": url(&upstream)}})).await;
    let generated = second["webhook"]["secret"].as_str().unwrap();
    server.gate.open();
    let seen = received(&upstream, 2).await;
    for (call, secret) in [(&first, secret), (&second, generated)] {
        let of_call = |seen: &&SeenRequest| seen.body.contains(call["call_id"].as_str().unwrap());
        assert!(verify(secret, seen.iter().find(of_call).unwrap()), "{call}");
    }
    for (webhook, message) in [
        (json!({"url": "ftp://example.com"}), "invalid `webhook.url`"),
        (json!({"url": "http://user:pw@127.0.0.1/"}), "invalid `webhook.url`"),
        (json!({"url": "http://10.0.0.1/"}), "invalid `webhook.url`"),
        (json!({"url": url(&upstream), "secret": "short"}), "invalid `webhook.secret`"),
    ] {
        let (status, answer) = server.post(path, json!({"webhook": webhook})).await;
        assert_eq!(status, 400, "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().starts_with(message), "{answer}");
    }
    assert_eq!(server.get("/api/webhooks").await.1["data"]["total"], 0, "it is not one of the tenant");
    let calls = server.get("/api/calls?tool=slow").await.1.to_string();
    assert!(!calls.contains("whsec_"), "{calls}");
}

#[tokio::test]
async fn redirects_are_not_followed_and_a_test_is_sent_once() {
    let server = start().await;
    let router = Router::new()
        .route("/hook", post(|| async { Redirect::temporary("/other").into_response() }))
        .route("/other", post(|| async { StatusCode::OK }));
    let upstream = Upstream::serve(router).await.unwrap();
    let (id, _) = create(&server, json!({"url": url(&upstream)})).await;
    let (status, tested) = server.post(&format!("/api/webhooks/{id}/test"), json!({})).await;
    assert_eq!(status, 200, "{tested}");
    let delivery = &tested["data"];
    assert_eq!(
        (&delivery["status"], &delivery["response_status"]),
        (&json!("failed"), &json!(307)),
        "{tested}"
    );
    assert_eq!(delivery["event"], "webhook.test");
    assert_eq!(upstream.seen().len(), 1, "neither followed nor tried again");
    assert_eq!(server.patch(&format!("/api/webhooks/{id}"), json!({"enabled": false})).await.0, 200);
    let (status, answer) = server.post(&format!("/api/webhooks/{id}/test"), json!({})).await;
    assert_eq!((status, code(&answer)), (409, "conflict"), "{answer}");
}

#[tokio::test]
async fn only_admins_manage_webhooks_and_bad_input_is_named() {
    let server = start().await;
    let (_, made) = server.post("/api/tokens", json!({"name": "editor", "role": "editor"})).await;
    let editor = made["data"]["token"].as_str().unwrap();
    for (method, path) in [(Method::GET, "/api/webhooks"), (Method::POST, "/api/webhooks")] {
        assert_eq!(with(&server, editor, method, path, json!({})).await.0, 403);
    }
    for (body, field) in [
        (json!({}), "url"),
        (json!({"url": "http://127.0.0.1/", "events": ["call.started"]}), "events"),
        (json!({"url": "http://127.0.0.1/", "events": []}), "events"),
        (json!({"url": "http://127.0.0.1/", "tools": ["a b"]}), "tools"),
        (json!({"url": "file:///etc/passwd"}), "url"),
        (json!({"url": "http://169.254.169.254/"}), "url"),
        (json!({"url": format!("http://127.0.0.1/{}", "x".repeat(3000))}), "url"),
    ] {
        let (status, answer) = server.post("/api/webhooks", body.clone()).await;
        assert_eq!((status, code(&answer)), (400, "invalid_request"), "{body}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(&format!("`{field}`")), "{answer}");
    }
    let (id, secret) = create(&server, json!({"url": "http://127.0.0.1:9/"})).await;
    let path = format!("/api/webhooks/{id}");
    let (_, rotated) = server.patch(&path, json!({"rotate_secret": true})).await;
    assert_ne!(rotated["data"]["secret"], secret);
    assert_eq!(server.delete(&path).await.0, 200);
    assert_eq!(server.get(&path).await.0, 404);
    assert_eq!(server.delete(&path).await.0, 404);
}

#[tokio::test]
async fn a_restart_loses_no_delivery() {
    let upstream = receiver(0).await;
    let mut server = start().await;
    create(&server, json!({"url": url(&upstream), "events": ["call.finished"]})).await;
    server.create(function_tool("open", "echo")).await;
    for number in 0..20 {
        server.invoke("open", json!({"n": number})).await;
    }
    server.halt().await;
    let _server = server.restart().await;
    let seen = received(&upstream, 20).await;
    let mut numbers: Vec<i64> = seen
        .iter()
        .map(|seen| {
            serde_json::from_str::<Value>(&seen.body).unwrap()["data"]["value"]["n"].as_i64().unwrap()
        })
        .collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_nodes_share_the_deliveries() {
    let database = crate::postgres::database().await;
    let on = async |url: String| {
        Server::start_with(move |settings| {
            settings.database_url = Some(Secret::new(url));
            settings.key = Some(Secret::new("00".repeat(32)));
        })
        .await
    };
    let (one, other) = (on(database.url.clone()).await, on(database.url.clone()).await);
    let upstream = receiver(0).await;
    create(&one, json!({"url": url(&upstream), "events": ["call.finished"]})).await;
    one.create(function_tool("open", "echo")).await;
    poll(async || (other.invoke("open", json!({"n": -1})).await.0 == 200).then_some(())).await;
    for number in 0..40 {
        let server = if number % 2 == 0 { &one } else { &other };
        server.invoke("open", json!({"n": number})).await;
    }
    let count = |seen: &[SeenRequest], number: i64| {
        let body = |seen: &SeenRequest| serde_json::from_str::<Value>(&seen.body).unwrap();
        seen.iter().filter(|seen| body(seen)["data"]["value"]["n"] == number).count()
    };
    poll(async || (0..40).all(|number| count(&upstream.seen(), number) > 0).then_some(())).await;
    assert!((0..40).all(|number| count(&upstream.seen(), number) == 1), "none twice");
}

#[tokio::test]
async fn another_node_sees_approvals_live() {
    let database = crate::postgres::database().await;
    let (one, other) = (crate::postgres::on(&database.url).await, crate::postgres::on(&database.url).await);
    let mut tool = function_tool("guarded", "echo");
    tool["requires_confirmation"] = json!(true);
    let path = "/api/events?topics=tools,approvals";
    let mut events = crate::events::Events::open(&other, &other.token, path, None).await;
    assert_eq!(events.next().await.unwrap().name, "ready");
    one.create(tool).await;
    assert_eq!(events.named("tool").await.data["name"], "guarded");
    let (_, made) = one.post("/api/tokens", json!({"name": "agent"})).await;
    let agent = made["data"]["token"].as_str().unwrap();
    let request = one.bare(Method::POST, "/api/tools/guarded/invoke").bearer_auth(agent);
    let (_, answer) = send(request).await;
    let asked = events.named("approval").await;
    assert_eq!((&asked.data["id"], &asked.data["status"]), (&answer["approval_id"], &json!("waiting")));
    let path = format!("/api/approvals/{}/deny", answer["approval_id"].as_str().unwrap());
    assert_eq!(one.post(&path, json!({})).await.0, 200);
    assert_eq!(events.named("approval").await.data["status"], "denied");
}
