//! `http_request`.

use haft_core::outcome::ErrorCode;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::body::Bytes;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::response::Redirect;
use haft_testkit::upstream::axum::routing::{any, get};
use serde_json::json;

use crate::harness::{Harness, Setup};

async fn upstream() -> Upstream {
    let json = || async { ([("content-type", "application/json"), ("set-cookie", "s=1")], r#"{"a": [1]}"#) };
    let router = Router::new()
        .route("/json", any(json))
        .route("/missing", get(|| async { (StatusCode::NOT_FOUND, "no such thing") }))
        .route(
            "/binary",
            get(|| async { ([("content-type", "image/png")], Bytes::from_static(&[0x89, b'P', 0, 255])) }),
        )
        .route(
            "/latin",
            get(|| async {
                ([("content-type", "text/plain; charset=iso-8859-1")], Bytes::from_static(b"gr\xfc\xdfe"))
            }),
        )
        .route("/large", get(|| async { "x".repeat(1024 * 1024 + 1) }))
        .route("/away", get(|| async { Redirect::temporary("http://169.254.169.254/latest") }));
    Upstream::serve(router).await.unwrap()
}

#[tokio::test]
async fn a_request_is_sent_as_specified() {
    let (harness, upstream) = (Harness::new(&Setup::default()), upstream().await);
    let args = json!({
        "url": upstream.url("/json?a=1"), "method": "POST", "headers": {"X-Own": "${SMTP_PASS} {{x}}"},
        "query": {"q": "a&b", "n": 2, "list": ["x", true]}, "body": {"k": "v"},
    });
    let value = harness.call("http_request", args).await.unwrap();
    assert_eq!((&value["status"], &value["body"]), (&json!(200), &json!({"a": [1]})));
    assert_eq!(value["headers"]["content-type"], "application/json");
    assert_eq!(value["headers"].get("set-cookie"), None);
    let seen = upstream.seen().remove(0);
    assert_eq!(
        (seen.method.as_str(), seen.target.as_str(), seen.body.as_str()),
        ("POST", "/json?a=1&q=a%26b&n=2&list=x&list=true", r#"{"k":"v"}"#)
    );
    assert_eq!(
        (seen.headers["x-own"].as_str(), seen.headers["content-type"].as_str()),
        ("${SMTP_PASS} {{x}}", "application/json")
    );
}

#[tokio::test]
async fn responses_of_every_kind() {
    let (harness, upstream) = (Harness::new(&Setup::default()), upstream().await);
    for (path, status, body) in [
        ("/missing", 404, json!("no such thing")),
        ("/latin", 200, json!("grüße")),
        (
            "/binary",
            200,
            json!({"media_type": "image/png", "bytes": 4, "note": "binary content is not shown"}),
        ),
    ] {
        let value = harness.call("http_request", json!({"url": upstream.url(path)})).await.unwrap();
        assert_eq!((&value["status"], &value["body"]), (&json!(status), &body), "{path}");
    }
}

#[tokio::test]
async fn invalid_and_forbidden_requests_are_rejected() {
    let (harness, upstream) = (Harness::new(&Setup::default()), upstream().await);
    let url = upstream.url("/json");
    for (args, code, part) in [
        (json!({"url": "example.com"}), ErrorCode::InvalidArguments, "start it with `https://`"),
        (json!({"url": "file:///etc/passwd"}), ErrorCode::InvalidArguments, "unsupported scheme `file`"),
        (json!({"url": "http://10.0.0.1/"}), ErrorCode::EgressRefused, "private"),
        (
            json!({"url": "http://user:pw@127.0.0.1/"}),
            ErrorCode::InvalidArguments,
            "must not contain a user name",
        ),
        (json!({"url": upstream.url("/away")}), ErrorCode::EgressRefused, "169.254.169.254"),
        (json!({"url": upstream.url("/large")}), ErrorCode::TooLarge, "exceeds the limit of 1048576 bytes"),
        (
            json!({"url": url, "headers": {"Host": "evil"}}),
            ErrorCode::InvalidArguments,
            "`Host` is set by haft",
        ),
        (
            json!({"url": url, "headers": {"Content-Length": "1"}}),
            ErrorCode::InvalidArguments,
            "is set by haft",
        ),
        (json!({"url": url, "headers": {"x": "a\r\nb: c"}}), ErrorCode::InvalidArguments, "line break"),
        (
            json!({"url": url, "headers": {"a b": "c"}}),
            ErrorCode::InvalidArguments,
            "is not a valid header name",
        ),
        (json!({"url": url, "method": "TRACE"}), ErrorCode::InvalidArguments, ""),
        (
            json!({"url": url, "body": "x".repeat(1024 * 1024 + 1)}),
            ErrorCode::InvalidArguments,
            "`body` exceeds the limit of",
        ),
    ] {
        let (found, message) = harness.fail("http_request", args).await;
        assert!(found == code && message.contains(part), "{part}: {found} {message}");
    }
    assert!(upstream.seen().iter().all(|seen| seen.target != "/json"));
}
