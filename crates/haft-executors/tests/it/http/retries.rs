//! What a failure says, to whom, and whether it may be repeated.

use haft_core::outcome::CallError;
use serde_json::{Value, json};

use super::harness::{Upstream, World, brief};

fn status(line: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {line}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

async fn failing(mut http: Value, execution: Value, answer: String) -> CallError {
    let server = Upstream::bytes(answer).await.unwrap();
    let path = http["url"].as_str().unwrap_or("/").to_owned();
    http["url"] = json!(server.url(&path));
    let mut error = World::new().tool(http).execution(execution).fail(json!({})).await;
    error.message = error.message.replace(&server.address.to_string(), "HOST");
    error
}

#[tokio::test]
async fn an_error_status_is_reported_to_operator_program_and_model() {
    let body = r#"{"error":"no such city; key k&y/secret was used, also k%26y%2Fsecret"}"#;
    let error = failing(
        json!({"url": "/v1?key=${KEY}"}),
        json!({}),
        status("404 Not Found", "content-type: application/json\r\n", body),
    )
    .await;
    let shown = r#"{"error":"no such city; key *** was used, also ***"}"#;
    assert_eq!(error.message, "GET http://HOST/v1?key=*** returned 404 Not Found");
    assert_eq!(error.details.as_deref(), Some(&json!({"status": 404, "body": shown})));
    assert_eq!(brief(&error), format!("http_status final: the service returned 404 Not Found: {shown}"));

    let page =
        status("502 Bad Gateway", "content-type: text/html\r\n", "<html>nginx on web-17.internal</html>");
    let error = failing(json!({}), json!({}), page).await;
    assert_eq!(brief(&error), "http_status again: the service returned 502 Bad Gateway");

    let long = status("400 Bad Request", "", &"x".repeat(100_000));
    let error = failing(json!({}), json!({}), long).await;
    assert!(error.model_text().len() < 700);
    assert!(error.details.unwrap().to_string().len() < 2500);
}

#[tokio::test]
async fn an_error_status_is_reported_even_if_its_body_never_ends() {
    use tokio::io::AsyncWriteExt;
    let server = Upstream::raw(|mut stream| async move {
        haft_testkit::upstream::read_head(&mut stream).await;
        let _ = stream.write_all(b"HTTP/1.1 500 Oops\r\ncontent-length: 99\r\n\r\nhalf").await;
        std::future::pending::<()>().await;
    })
    .await
    .unwrap();
    let world = World::new();
    let error = world.tool(json!({"url": server.url("/")})).fail(json!({})).await;
    assert_eq!(brief(&error), "http_status again: the service returned 500 Internal Server Error: half");
}

#[tokio::test]
async fn retryable_statuses() {
    let retry = json!({"retry": {"attempts": 2}});
    for (method, execution, line, expected) in [
        ("GET", json!({}), "503 Service Unavailable", true),
        ("GET", json!({}), "429 Too Many Requests", true),
        ("GET", json!({}), "500 Internal Server Error", true),
        ("GET", json!({}), "404 Not Found", false),
        ("GET", json!({}), "400 Bad Request", false),
        ("GET", json!({}), "301 Moved Permanently", false),
        ("PUT", json!({}), "503 Service Unavailable", true),
        ("DELETE", json!({}), "503 Service Unavailable", true),
        ("POST", json!({}), "503 Service Unavailable", false),
        ("PATCH", json!({}), "429 Too Many Requests", false),
        ("POST", retry.clone(), "503 Service Unavailable", true),
        ("POST", retry, "400 Bad Request", false),
        ("POST", json!({"retry": {"attempts": 0}}), "503 Service Unavailable", false),
    ] {
        let error = failing(json!({"method": method}), execution.clone(), status(line, "", "")).await;
        assert_eq!(error.retryable, expected, "{method} {execution} {line}");
    }
}

#[tokio::test]
async fn retry_after_is_respected() {
    for (header, seconds) in [
        ("retry-after: 7\r\n", Some(7)),
        ("retry-after: Sun, 15 Nov 2026 12:01:00 GMT\r\n", Some(60)),
        ("retry-after: 999999\r\n", Some(600)),
        ("retry-after: later\r\n", None),
        ("", None),
    ] {
        let error = failing(json!({}), json!({}), status("429 Too Many Requests", header, "")).await;
        assert_eq!(error.retry_after.map(|wait| wait.as_secs()), seconds, "{header}");
    }
}

#[tokio::test]
async fn a_request_that_was_not_sent_may_be_retried() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let world = World::new();
    let url = format!("http://{closed}/?key=${{KEY}}");
    let error = world.tool(json!({"method": "POST", "url": url})).fail(json!({})).await;
    assert_eq!(brief(&error), "network again: the service is unreachable");
    assert_eq!(
        error.message.replace(&closed.to_string(), "HOST"),
        "POST http://HOST/?key=***: Connection refused (os error 111)"
    );
    let broke = failing(json!({"method": "POST"}), json!({}), String::new()).await;
    assert_eq!(brief(&broke), "network final: the connection to the service was lost");

    // A repetition runs all steps again: after a POST even an unsent request is final.
    let ok = Upstream::bytes(status("200 OK", "", "")).await.unwrap();
    for (method, expected) in [("POST", false), ("GET", true)] {
        let steps = json!({"steps": [
            {"name": "one", "method": method, "url": ok.url("/")},
            {"name": "two", "url": format!("http://{closed}/")}
        ]});
        assert_eq!(world.tool(steps).fail(json!({})).await.retryable, expected, "{method}");
    }
}

#[tokio::test]
async fn empty_mode_returns_null_after_the_last_attempt() {
    let world = World::new();
    let unavailable = Upstream::bytes(status("503 Service Unavailable", "", "")).await.unwrap();
    let missing = Upstream::bytes(status("404 Not Found", "", "")).await.unwrap();
    let late = Upstream::bytes(status("503 Service Unavailable", "retry-after: 300\r\n", "")).await.unwrap();
    let tool = |server: &Upstream| world.tool(json!({"url": server.url("/"), "error_mode": "empty"}));
    assert_eq!(tool(&missing).run(json!({})).await, Ok(Value::Null));
    assert!(tool(&unavailable).run_at(0, &json!({})).await.0.unwrap_err().retryable);
    assert!(tool(&unavailable).run_at(1, &json!({})).await.0.unwrap_err().retryable);
    assert_eq!(tool(&unavailable).run_at(2, &json!({})).await.0, Ok(Value::Null));
    assert_eq!(tool(&late).run_at(0, &json!({})).await.0, Ok(Value::Null));
    let refused = world.tool(json!({"url": "http://10.0.0.1/", "error_mode": "empty"}));
    assert_eq!(refused.fail(json!({})).await.code.as_str(), "egress_refused");
    let secretless = world.tool(json!({"url": "http://127.0.0.1/${NOT_SET}", "error_mode": "empty"}));
    assert_eq!(secretless.fail(json!({})).await.code.as_str(), "secret_missing");
}

#[tokio::test]
async fn success_codes_decide() {
    let teapot =
        Upstream::bytes(status("418 I'm a teapot", "content-type: text/plain\r\n", "short")).await.unwrap();
    let world = World::new();
    let tool = |codes: Value| world.tool(json!({"url": teapot.url("/"), "success_codes": codes}));
    assert_eq!(tool(json!([200, 418])).run(json!({})).await, Ok(json!("short")));
    assert_eq!(tool(json!([200])).fail(json!({})).await.code.as_str(), "http_status");
    assert_eq!(tool(json!([])).fail(json!({})).await.code.as_str(), "http_status");
}
