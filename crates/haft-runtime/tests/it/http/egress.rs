//! The guard: destinations, redirects, and what crosses origins.

use serde_json::{Value, json};

use super::harness::{Upstream, World, axum, brief, echo};
use axum::http::{StatusCode, header};

/// A server that redirects every request with this status to this place.
async fn redirecting(status: u16, location: &str) -> Upstream {
    let location = location.to_owned();
    let status = StatusCode::from_u16(status).unwrap();
    let handler = move || async move { (status, [(header::LOCATION, location)]) };
    Upstream::serve(axum::Router::new().fallback(handler)).await.unwrap()
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_is_refused_at_connect_time() {
    let server = echo().await;
    let url = format!("http://localhost:{}/", server.address.port());
    let error = World::with_private(&[]).tool(json!({"url": url})).fail(json!({})).await;
    assert_eq!(brief(&error), "egress_refused final: the destination of the request is not allowed");
    assert!(error.message.starts_with("`localhost` resolves to "), "{error}");
    assert!(error.message.ends_with("to `egress.private_hosts` to allow it"), "{error}");
    assert_eq!(server.seen(), []);
    for private in ["localhost", "127.0.0.0/8"] {
        let allowed = World::with_private(&[private]);
        assert!(allowed.tool(json!({"url": url})).run(json!({})).await.is_ok(), "{private}");
    }
    let other_port = World::with_private(&["localhost:1"]).tool(json!({"url": url})).fail(json!({})).await;
    assert_eq!(other_port.code.as_str(), "egress_refused");
}

#[tokio::test]
async fn private_numbers_are_refused_in_every_notation() {
    let port = echo().await;
    let world = World::with_private(&[]);
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]", "[::1]"] {
        let url = format!("http://{host}:{}/", port.address.port());
        let error = world.tool(json!({"url": url})).fail(json!({})).await;
        assert_eq!(error.code.as_str(), "egress_refused", "{host}");
    }
    assert_eq!(port.seen(), []);
    let by_argument = world.tool(json!({"url": "http://${a}/"})).args(&["a"]);
    assert_eq!(by_argument.fail(json!({"a": "169.254.169.254"})).await.code.as_str(), "egress_refused");
}

#[tokio::test]
async fn tls_needs_no_provider_of_the_process_and_does_not_fall_back() {
    let server = echo().await;
    let url = format!("https://{}/", server.address);
    let error = World::new().tool(json!({"method": "POST", "url": url})).fail(json!({})).await;
    assert_eq!(brief(&error), "network again: the service could not be reached");
    assert_eq!(server.seen(), []);
}

#[tokio::test]
async fn redirects_are_checked_again() {
    let world = World::new();
    for (location, expected) in [
        ("http://10.0.0.1/", "egress_refused final: the destination of the request is not allowed"),
        (
            "http://169.254.169.254/latest",
            "egress_refused final: the destination of the request is not allowed",
        ),
        ("http://0xa9fea9fe/", "egress_refused final: the destination of the request is not allowed"),
        ("file:///etc/passwd", "egress_refused final: the destination of the request is not allowed"),
        ("http://u:p@127.0.0.1/", "egress_refused final: the destination of the request is not allowed"),
        (
            "/again",
            "invalid_response final: the service redirected the request in a way that cannot be followed",
        ),
        (
            "http://[",
            "invalid_response final: the service redirected the request in a way that cannot be followed",
        ),
    ] {
        let server = redirecting(302, location).await;
        let error = world.tool(json!({"url": server.url("/")})).fail(json!({})).await;
        assert_eq!(brief(&error), expected, "{location}");
        assert!(server.seen().len() <= 6);
    }
}

#[tokio::test]
async fn a_redirect_that_is_wanted_is_an_answer() {
    let server = redirecting(302, "http://10.0.0.1/").await;
    let world = World::new();
    let tool = world.tool(json!({"url": server.url("/"), "success_codes": [302]}));
    assert_eq!(tool.run(json!({})).await, Ok(json!(null)));
}

/// Sends a POST with credentials of every sort through a redirect; returns what the last server saw.
async fn redirected(status: u16, target: &Upstream, body: Value) -> Result<Value, String> {
    let first = redirecting(status, &target.url("/after")).await;
    let world = World::new();
    let tool = world.tool(json!({
        "method": "POST", "url": first.url("/"), "body": body,
        "headers": {"Cookie": "a=b", "X-Token": "t-${TOKEN}", "X-Plain": "plain"},
        "auth": {"type": "api_key", "name": "X-Api-Key", "value": "${KEY}"}
    }));
    tool.run(json!({})).await.map_err(|error| brief(&error))
}

#[tokio::test]
async fn credentials_stay_with_their_origin() {
    let target = echo().await;
    for (status, method, body) in [
        (301, "GET", ""),
        (302, "GET", ""),
        (303, "GET", ""),
        (307, "POST", r#"{"n":1}"#),
        (308, "POST", r#"{"n":1}"#),
    ] {
        let seen = redirected(status, &target, json!({"n": 1})).await.unwrap();
        assert_eq!((&seen["method"], &seen["body"]), (&json!(method), &json!(body)), "{status}");
        let headers = seen["headers"].as_object().unwrap();
        let kept: Vec<_> = ["cookie", "x-token", "x-plain", "x-api-key"]
            .into_iter()
            .filter(|name| headers.contains_key(*name))
            .collect();
        assert_eq!(kept, ["x-plain"], "{status}");
        assert_eq!(headers.contains_key("content-type"), method == "POST", "{status}");
    }
    assert_eq!(
        redirected(307, &target, json!({"key": "${KEY}"})).await.unwrap_err(),
        "egress_refused final: the destination of the request is not allowed"
    );
}

#[tokio::test]
async fn credentials_follow_within_an_origin() {
    let router = axum::Router::new()
        .route("/", axum::routing::get(|| async { (StatusCode::FOUND, [(header::LOCATION, "/after?x=1")]) }))
        .fallback(|headers: axum::http::HeaderMap| async move {
            headers["authorization"].to_str().unwrap().to_owned()
        });
    let server = Upstream::serve(router).await.unwrap();
    let world = World::new();
    let tool = world.tool(json!({"url": server.url("/"), "auth": {"type": "bearer", "token": "${TOKEN}"}}));
    assert_eq!(tool.run(json!({})).await, Ok(json!("Bearer tok-12345")));
}
