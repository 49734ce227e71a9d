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
async fn a_name_that_resolves_to_loopback_is_denied_at_connect_time() {
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
async fn private_addresses_are_denied_in_every_notation() {
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
    assert_eq!(brief(&error), "network again: the service is unreachable");
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
        ("/again", "invalid_response final: the service sent an invalid redirect"),
        ("http://[", "invalid_response final: the service sent an invalid redirect"),
    ] {
        let server = redirecting(302, location).await;
        let error = world.tool(json!({"url": server.url("/")})).fail(json!({})).await;
        assert_eq!(brief(&error), expected, "{location}");
        if expected.starts_with("egress_refused") {
            let by = format!("GET {}, redirected to ", server.url("/"));
            assert!(error.message.starts_with(&by), "{}", error.message);
        }
        assert!(server.seen().len() <= 6);
    }
}

#[tokio::test]
async fn an_accepted_redirect_status_is_a_response() {
    let server = redirecting(302, "http://10.0.0.1/").await;
    let world = World::new();
    let tool = world.tool(json!({"url": server.url("/"), "success_codes": [302]}));
    assert_eq!(tool.run(json!({})).await, Ok(json!(null)));
}

/// Sends a request with credentials of every sort through a redirect; returns what the last server saw.
async fn redirected(status: u16, target: &Upstream, request: Value) -> Result<Value, String> {
    let first = redirecting(status, &target.url("/after")).await;
    let world = World::new();
    let mut http = json!({
        "url": first.url("/"),
        "headers": {"Cookie": "a=b", "X-Token": "t-${TOKEN}", "X-Session": "literal", "X-Argument": "${a}",
                    "Accept": "text/csv", "Accept-Language": "de", "User-Agent": "mine"},
        "auth": {"type": "api_key", "name": "X-Api-Key", "value": "${KEY}"}
    });
    http.as_object_mut().unwrap().extend(request.as_object().unwrap().clone());
    let tool = world.tool(http).args(&["a"]);
    tool.run(json!({"a": "given"})).await.map_err(|error| brief(&error))
}

#[tokio::test]
async fn only_safe_headers_cross_origins() {
    let target = echo().await;
    for (status, request, method) in [
        (301, json!({"method": "POST", "body": {"n": 1}}), "GET"),
        (302, json!({"method": "POST", "body": {"n": 1}}), "GET"),
        (303, json!({"method": "PUT", "body": {"n": 1}}), "GET"),
        (307, json!({"method": "GET"}), "GET"),
        (307, json!({"method": "POST"}), "POST"),
        (308, json!({"method": "DELETE"}), "DELETE"),
    ] {
        let seen = redirected(status, &target, request).await.unwrap();
        assert_eq!((&seen["method"], &seen["body"]), (&json!(method), &json!("")), "{status}");
        let mut names: Vec<_> = seen["headers"].as_object().unwrap().keys().map(String::as_str).collect();
        names.retain(|name| !matches!(*name, "host" | "content-length" | "accept-encoding"));
        assert_eq!(names, ["accept", "accept-language", "user-agent"], "{status} {method}");
        assert_eq!(seen["headers"]["user-agent"], "mine");
    }
}

#[tokio::test]
async fn a_body_does_not_cross_origins() {
    let target = echo().await;
    for (status, method) in [(307, "POST"), (308, "POST"), (302, "PUT")] {
        for body in [json!({"n": 1}), json!({"key": "${KEY}"}), json!("${a}")] {
            assert_eq!(
                redirected(status, &target, json!({"method": method, "body": body})).await.unwrap_err(),
                "egress_refused final: the destination of the request is not allowed"
            );
        }
    }
    assert_eq!(target.seen(), []);
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

#[tokio::test]
async fn an_error_after_a_redirect_names_the_target() {
    let router = axum::Router::new()
        .route("/status", axum::routing::get(|| async { StatusCode::NOT_FOUND }))
        .route("/json", axum::routing::get(|| async { "{" }))
        .route("/slow", axum::routing::get(std::future::pending::<()>));
    let target = Upstream::serve(router).await.unwrap();
    let world = World::new();
    let closed = "http://127.0.0.1:9/none?key=x";
    for (location, timeout_ms, why) in [
        (target.url("/status?key=x"), 20_000, " returned 404 Not Found"),
        (target.url("/json"), 20_000, ": the response is not valid JSON"),
        (target.url("/slow#x"), 1000, ": no complete response within 1s"),
        (closed.to_owned(), 20_000, ": "),
    ] {
        let first = redirecting(302, &location).await;
        let http = json!({"url": first.url("/first"), "response": "json", "timeout_ms": timeout_ms});
        let error = world.tool(http).fail(json!({})).await;
        let place = location.split(['?', '#']).next().unwrap();
        let expected = format!("GET {}, redirected to {place}{why}", first.url("/first"));
        assert!(error.message.starts_with(&expected), "{}\n{expected}", error.message);
        assert!(!error.message.contains("key"), "{}", error.message);
    }
}
