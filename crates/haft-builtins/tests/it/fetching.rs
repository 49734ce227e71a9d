//! `web_fetch`.

use haft_core::outcome::ErrorCode;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::body::Bytes;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::response::{Html, Redirect};
use haft_testkit::upstream::axum::routing::get;
use serde_json::{Value, json};

use crate::harness::{Harness, Setup};

async fn upstream() -> Upstream {
    let page = "<html><head><title>Page</title></head><body><h1>Hello</h1><p>See <a href='/other'>this</a>.</p></body></html>";
    let latin: &[u8] = b"<html><head><meta charset=\"iso-8859-1\"><title>Gr\xfc\xdfe</title></head><body>sch\xf6n</body></html>";
    let router = Router::new()
        .route("/page", get(move || async move { Html(page) }))
        .route("/moved", get(|| async { Redirect::permanent("/page") }))
        .route(
            "/latin",
            get(move || async move { ([("content-type", "text/html")], Bytes::from_static(latin)) }),
        )
        .route("/json", get(|| async { ([("content-type", "application/problem+json")], r#"{"a": 1}"#) }))
        .route("/broken", get(|| async { ([("content-type", "application/json")], "{") }))
        .route("/text", get(|| async { "äöü".repeat(10_000) }))
        .route(
            "/pdf",
            get(|| async { ([("content-type", "application/pdf")], Bytes::from_static(b"%PDF\0\xff")) }),
        )
        .route("/huge", get(|| async { "x".repeat(5 * 1024 * 1024) }))
        .route("/gone", get(|| async { (StatusCode::GONE, Html("<p>gone")) }))
        .route("/away", get(|| async { Redirect::temporary("http://192.168.0.1/") }));
    Upstream::serve(router).await.unwrap()
}

#[tokio::test]
async fn pages_become_markdown() {
    let (harness, upstream) = (Harness::new(&Setup::default()), upstream().await);
    let fetch = async |args: Value| harness.call("web_fetch", args).await.unwrap();
    let page = json!({
        "url": upstream.url("/page"), "content_type": "text/html", "title": "Page",
        "links": [{"text": "this", "url": upstream.url("/other")}],
        "content": format!("# Hello\n\nSee [this]({}).", upstream.url("/other")), "truncated": false,
    });
    assert_eq!(fetch(json!({"url": upstream.url("/page"), "links": true})).await, page);
    assert_eq!(
        fetch(json!({"url": upstream.url("/moved"), "links": true})).await,
        page,
        "redirects are followed"
    );
    let raw = fetch(json!({"url": upstream.url("/page"), "raw": true})).await;
    assert!(raw["content"].as_str().unwrap().starts_with("<html>"));
    let latin = fetch(json!({"url": upstream.url("/latin")})).await;
    assert_eq!((&latin["title"], &latin["content"]), (&json!("Grüße"), &json!("schön")));
    assert_eq!(fetch(json!({"url": upstream.url("/json")})).await["content"], json!({"a": 1}));
    assert_eq!(fetch(json!({"url": upstream.url("/broken")})).await["content"], json!("{"));
}

#[tokio::test]
async fn long_content_is_truncated_and_can_be_continued() {
    let (harness, upstream) = (Harness::new(&Setup::default()), upstream().await);
    let fetch = async |args: Value| harness.call("web_fetch", args).await.unwrap();
    let first = fetch(json!({"url": upstream.url("/text")})).await;
    assert_eq!(
        (first["content"].as_str().unwrap().chars().count(), &first["truncated"]),
        (20_000, &json!(true))
    );
    let rest = fetch(json!({"url": upstream.url("/text"), "start": 29_998, "max_length": 5})).await;
    assert_eq!((&rest["content"], &rest["truncated"]), (&json!("öü"), &json!(false)));
    let past = fetch(json!({"url": upstream.url("/text"), "start": 1_000_000})).await;
    assert_eq!((&past["content"], &past["truncated"]), (&json!(""), &json!(false)));
    let huge = fetch(json!({"url": upstream.url("/huge"), "max_length": 10})).await;
    assert_eq!((&huge["content"], &huge["truncated"]), (&json!("xxxxxxxxxx"), &json!(true)));
}

#[tokio::test]
async fn unsupported_pages_are_errors() {
    let (harness, upstream) = (Harness::new(&Setup::default()), upstream().await);
    for (url, code, part) in [
        (upstream.url("/pdf"), ErrorCode::InvalidResponse, "unsupported content type `application/pdf`"),
        (upstream.url("/gone"), ErrorCode::HttpStatus, "returned 410 Gone"),
        (upstream.url("/away"), ErrorCode::EgressRefused, "192.168.0.1"),
        ("gopher://x/".to_owned(), ErrorCode::InvalidArguments, "unsupported scheme `gopher`"),
        ("http://[::1]/".to_owned(), ErrorCode::EgressRefused, "loopback"),
        ("not a url".to_owned(), ErrorCode::InvalidArguments, "`url`"),
    ] {
        let (found, message) = harness.fail("web_fetch", json!({"url": url})).await;
        assert!(found == code && message.contains(part), "{url}: {found} {message}");
    }
    let denied = Harness::new(&Setup { deny_loopback: true, ..Setup::default() });
    assert_eq!(
        denied.fail("web_fetch", json!({"url": upstream.url("/page")})).await.0,
        ErrorCode::EgressRefused
    );
}
