//! Access tokens: fetched once, shared, refreshed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

use super::harness::{Upstream, World, axum, brief};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};

/// How the authorisation server and the service behave.
#[derive(Default)]
struct Behaviour {
    issued: AtomicUsize,
    expires_in: Option<Value>,
    rotate: bool,
    /// The service takes only tokens from this one on.
    accept_from: AtomicUsize,
    failure: Option<(u16, Value)>,
    /// The token requests, counted from 1, that fail, and with what.
    outages: Vec<(usize, u16)>,
}

async fn token(State(behaviour): State<Arc<Behaviour>>) -> (StatusCode, axum::Json<Value>) {
    // Time for others to arrive while the first one fetches.
    tokio::time::sleep(std::time::Duration::from_millis(30)).await;
    let number = behaviour.issued.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some((status, body)) = &behaviour.failure {
        return (StatusCode::from_u16(*status).unwrap(), axum::Json(body.clone()));
    }
    if let Some((_, status)) = behaviour.outages.iter().find(|(when, _)| *when == number) {
        return (StatusCode::from_u16(*status).unwrap(), axum::Json(json!({})));
    }
    let mut answer = json!({"access_token": format!("access-{number}"), "token_type": "Bearer"});
    if let Some(expires_in) = &behaviour.expires_in {
        answer["expires_in"] = expires_in.clone();
    }
    if behaviour.rotate {
        answer["refresh_token"] = json!(format!("refresh-{number}"));
    }
    (StatusCode::OK, axum::Json(answer))
}

async fn service(State(behaviour): State<Arc<Behaviour>>, headers: HeaderMap) -> (StatusCode, String) {
    let sent = headers["authorization"].to_str().unwrap().to_owned();
    let number: usize = sent.trim_start_matches("Bearer access-").parse().unwrap();
    if number < behaviour.accept_from.load(Ordering::SeqCst) {
        return (StatusCode::UNAUTHORIZED, "no".to_owned());
    }
    (StatusCode::OK, sent)
}

async fn serve(behaviour: &Arc<Behaviour>) -> Upstream {
    let router = axum::Router::new()
        .route("/token", axum::routing::post(token))
        .fallback(service)
        .with_state(Arc::clone(behaviour));
    Upstream::serve(router).await.unwrap()
}

fn tool(server: &Upstream, refresh: bool) -> Value {
    let mut auth = json!({
        "type": "oauth2", "token_url": server.url("/token"), "client_id": "me & co", "client_secret": "${CLIENT_SECRET}",
        "scopes": ["read", "write"], "audience": "api"
    });
    if refresh {
        auth["refresh_token"] = json!("${REFRESH}");
    }
    json!({"url": server.url("/data"), "auth": auth})
}

#[tokio::test]
async fn one_token_serves_many_calls_and_is_fetched_once_under_concurrency() {
    let behaviour = Arc::new(Behaviour { expires_in: Some(json!(3600)), ..Behaviour::default() });
    let server = serve(&behaviour).await;
    let world = World::new();
    let tool = world.tool(tool(&server, false));
    let mut calls = Vec::new();
    for _ in 0..20 {
        calls.push(tool.run(json!({})));
    }
    for outcome in futures_util::future::join_all(calls).await {
        assert_eq!(outcome, Ok(json!("Bearer access-1")));
    }
    assert_eq!(tool.run(json!({})).await, Ok(json!("Bearer access-1")));
    assert_eq!(behaviour.issued.load(Ordering::SeqCst), 1);
    let asked = server.seen().into_iter().find(|seen| seen.target == "/token").unwrap();
    assert_eq!(asked.body, "grant_type=client_credentials&scope=read%20write&audience=api");
    // base64 of `me%20%26%20co:s3cr%26t`.
    assert_eq!(asked.headers["authorization"], "Basic bWUlMjAlMjYlMjBjbzpzM2NyJTI2dA==");
}

#[tokio::test]
async fn an_access_token_is_hidden() {
    let behaviour = Arc::new(Behaviour::default());
    let server = serve(&behaviour).await;
    let world = World::new();
    let (_, context) = world.tool(tool(&server, false)).run_at(0, &json!({})).await;
    assert!(context.exposed().iter().any(|secret| secret.expose() == "access-1"));
}

#[tokio::test]
async fn a_rejected_token_is_replaced_once() {
    let behaviour = Arc::new(Behaviour { expires_in: Some(json!("3600")), ..Behaviour::default() });
    let server = serve(&behaviour).await;
    let world = World::new();
    let tool = world.tool(tool(&server, false));
    assert_eq!(tool.run(json!({})).await, Ok(json!("Bearer access-1")));
    behaviour.accept_from.store(2, Ordering::SeqCst);
    assert_eq!(tool.run(json!({})).await, Ok(json!("Bearer access-2")));
    behaviour.accept_from.store(100, Ordering::SeqCst);
    assert_eq!(
        brief(&tool.fail(json!({})).await),
        "http_status final: the service returned 401 Unauthorized: no"
    );
    assert_eq!(behaviour.issued.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn an_expired_token_is_replaced_and_refresh_tokens_rotate() {
    let behaviour = Arc::new(Behaviour { expires_in: Some(json!(0)), rotate: true, ..Behaviour::default() });
    let server = serve(&behaviour).await;
    let world = World::new();
    let tool = world.tool(tool(&server, true));
    for number in 1..=3 {
        assert_eq!(tool.run(json!({})).await, Ok(json!(format!("Bearer access-{number}"))));
    }
    let bodies: Vec<_> =
        server.seen().into_iter().filter(|seen| seen.target == "/token").map(|seen| seen.body).collect();
    let expected = |token: &str| {
        format!("grant_type=refresh_token&refresh_token={token}&scope=read%20write&audience=api")
    };
    assert_eq!(bodies, [expected("refresh-0"), expected("refresh-1"), expected("refresh-2")]);
}

#[tokio::test]
async fn a_rotated_refresh_token_survives_an_outage_but_not_a_rejection() {
    let outages = vec![(2, 503), (4, 400), (6, 401)];
    let behaviour =
        Arc::new(Behaviour { expires_in: Some(json!(0)), rotate: true, outages, ..Behaviour::default() });
    let server = serve(&behaviour).await;
    let world = World::new();
    let tool = world.tool(tool(&server, true));
    for number in 1..=7 {
        assert_eq!(tool.run(json!({})).await.is_ok(), number % 2 == 1, "{number}");
    }
    let seen = server.seen().into_iter().filter(|seen| seen.target == "/token");
    let tokens: Vec<_> = seen.map(|seen| seen.body.split('&').nth(1).unwrap().to_owned()).collect();
    let number = ["0", "1", "1", "3", "0", "5", "0"];
    assert_eq!(tokens, number.map(|number| format!("refresh_token=refresh-{number}")));
}

#[tokio::test]
async fn a_failed_fetch_is_shared_by_waiting_calls_and_shows_no_secret() {
    let body = json!({"error": "invalid_client", "error_description": "secret s3cr&t is wrong"});
    let behaviour = Arc::new(Behaviour { failure: Some((401, body)), ..Behaviour::default() });
    let server = serve(&behaviour).await;
    let world = World::new();
    let tool = world.tool(tool(&server, false));
    let calls: Vec<_> = (0..10).map(|_| tool.run(json!({}))).collect();
    for outcome in futures_util::future::join_all(calls).await {
        let error = outcome.unwrap_err();
        assert_eq!(
            brief(&error),
            "http_status final: the tool could not get an access token for the service"
        );
        assert_eq!(
            error.message.replace(&server.address.to_string(), "HOST"),
            "POST http://HOST/token (token endpoint) returned 401 Unauthorized invalid_client: secret *** is wrong"
        );
    }
    assert_eq!(behaviour.issued.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn token_endpoints_pass_the_guard_too() {
    let world = World::new();
    let tool = world.tool(json!({
        "url": "http://127.0.0.1:1/",
        "auth": {"type": "oauth2", "token_url": "http://169.254.169.254/token", "client_id": "x"}
    }));
    assert_eq!(
        brief(&tool.fail(json!({})).await),
        "egress_refused final: the destination of the request is not allowed"
    );
}

#[tokio::test]
async fn invalid_responses_of_a_token_endpoint() {
    for (answer, expected) in [
        (json!({}), "the response has no `access_token`"),
        (json!({"access_token": ""}), "the response has no `access_token`"),
        (json!({"access_token": 5}), "the response has no `access_token`"),
        (json!({"access_token": "x", "token_type": "mac"}), "the token is not a bearer token"),
    ] {
        let reply = answer.clone();
        let router = axum::Router::new().fallback(move || async move { axum::Json(reply) });
        let server = Upstream::serve(router).await.unwrap();
        let world = World::new();
        let error = world.tool(tool(&server, false)).fail(json!({})).await;
        assert!(error.message.ends_with(expected), "{answer}: {error}");
        assert_eq!(error.code.as_str(), "invalid_response");
    }
}

#[tokio::test]
async fn a_large_response_of_the_token_endpoint_is_rejected() {
    let server =
        Upstream::serve(axum::Router::new().fallback(|| async { "x".repeat(70_000) })).await.unwrap();
    let world = World::new();
    let error = world.tool(tool(&server, false)).fail(json!({})).await;
    assert_eq!(
        error.message,
        format!(
            "POST {} (token endpoint): the response exceeds the limit of 65536 bytes",
            server.url("/token")
        )
    );
    assert_eq!(brief(&error), "too_large final: the tool could not get an access token for the service");
}
