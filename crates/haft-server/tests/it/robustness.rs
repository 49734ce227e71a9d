//! Requests at the edges: what is refused, closed, timed out or not started.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::harness::{Server, code, function_tool, send};

#[tokio::test]
async fn existing_names_with_underscores_work_on_bundle_routes() {
    let server = Server::start().await;
    let tool = server.create(function_tool("my_tool", "echo")).await;
    let (bundle, version) = (tool["bundle"].as_str().unwrap(), tool["version"].as_str().unwrap());
    let path = format!("/tools/bundles/{bundle}/tools/my_tool/version/{version}");
    let (status, answer) = server.get(&path).await;
    assert_eq!((status, &answer["data"]["name"]), (200, &json!("my_tool")), "{answer}");
    let (status, answer) = server.post(&format!("{path}/invoke"), json!({"args": {"a": 1}})).await;
    assert_eq!((status, &answer["value"]), (200, &json!({"a": 1})), "{answer}");
    assert_eq!(server.patch(&path, json!({"isEnabled": false})).await.0, 200);
    let (status, answer) = server.put(&path, function_tool("my_tool", "echo")).await;
    assert_eq!((status, code(&answer)), (400, "invalid_request"), "none is created here: {answer}");
    assert_eq!(server.delete(&path).await.0, 200);
}

#[tokio::test]
async fn the_texts_of_a_bundle_may_have_any_character() {
    let server = Server::start().await;
    let text = "a\u{7f}\u{80}\u{85}\u{9f}\u{2028}\u{feff}\u{fffe}\u{ffff}\u{1f600}\tb\n";
    let body = json!({"displayName": text, "description": text});
    let (status, answer) = server.put("/tools/bundles/odd", body).await;
    assert_eq!(status, 201, "{answer}");
    let server = server.restart().await;
    let (_, answer) = server.get("/tools/bundles/odd").await;
    let found = (&answer["data"]["display_name"], &answer["data"]["description"]);
    assert_eq!(found, (&json!(text), &json!(text)));
}

/// Sends the beginning of a request and returns the response up to the end of its headers.
async fn headers_of(server: &Server, request: &str) -> String {
    let mut stream = TcpStream::connect(server.addr).await.unwrap();
    stream.write_all(request.replace("TOKEN", &server.token).as_bytes()).await.unwrap();
    let mut response = Vec::new();
    while !response.windows(4).any(|end| end == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut response).await.unwrap() > 0, "closed without a response");
    }
    String::from_utf8_lossy(&response).to_ascii_lowercase()
}

#[tokio::test]
async fn a_connection_that_will_be_closed_says_so() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    let start = "POST /api/tools/echo/invoke HTTP/1.1\r\nhost: localhost\r\n";
    let authorized = format!("{start}authorization: Bearer TOKEN\r\n");
    for (request, status, closed) in [
        // Too large, and not read because the client waits for permission to send it.
        (format!("{authorized}expect: 100-continue\r\ncontent-length: 999999999\r\n\r\n"), 413, true),
        // Rejected before the rest of the body has arrived.
        (format!("{start}content-length: 100000\r\n\r\n{{"), 401, true),
        (format!("{authorized}content-length: 2\r\n\r\n{{}}"), 200, false),
        (format!("{authorized}transfer-encoding: chunked\r\n\r\n2\r\n{{}}\r\n0\r\n\r\n"), 200, false),
        ("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(), 200, false),
    ] {
        let headers = headers_of(&server, &request).await;
        assert!(headers.starts_with(&format!("http/1.1 {status}")), "{request}\n{headers}");
        assert_eq!(headers.contains("\r\nconnection: close\r\n"), closed, "{request}\n{headers}");
    }
}

fn sleeping(name: &str, implementation: &Value) -> Value {
    json!({
        "name": name, "description": "Sleeps", "implementation": implementation,
        "input_schema": {"type": "object"}, "sandbox": name.contains("isolated"),
    })
}

#[tokio::test]
async fn a_timeout_of_one_millisecond_is_a_timeout() {
    let server = Server::start().await;
    let (bash, python) = ("sleep 60", "import time; time.sleep(60)");
    for level in ["isolated", "host"] {
        for (kind, implementation) in [
            ("bash", json!({"type": "script", "runtime": "bash", "body": bash})),
            ("python", json!({"type": "script", "runtime": "python", "body": python})),
            ("exec", json!({"type": "exec", "argv": ["sleep", "60"]})),
            ("function", json!({"type": "function", "function": "sleep"})),
        ] {
            let name = format!("{kind}-{level}");
            server.create(sleeping(&name, &implementation)).await;
            for _ in 0..5 {
                let path = format!("/api/tools/{name}/invoke");
                let (_, answer) = server.post(&path, json!({"timeout_ms": 1})).await;
                assert_eq!(code(&answer), "timeout", "{name} {answer}");
            }
        }
    }
}

#[tokio::test]
async fn a_viewer_starts_no_process_by_validating() {
    let server = Server::start().await;
    let (_, answer) = server.post("/api/tokens", json!({"name": "reader", "role": "viewer"})).await;
    let viewer = answer["data"]["token"].as_str().unwrap();
    let definition = json!({"name": "x", "description": "d", "runtime": "bash", "body": "if then"});
    let body = json!({"definition": definition}).to_string();
    for (token, errors, unchecked) in [(server.token.as_str(), 1, 0), (viewer, 0, 1)] {
        let request =
            server.bare(Method::POST, "/api/tools/x/validate").bearer_auth(token).body(body.clone());
        let (status, answer) = send(request).await;
        assert_eq!(status, 200, "{answer}");
        let report = &answer["data"];
        assert_eq!(report["errors"].as_array().unwrap().len(), errors, "{report}");
        let warnings = report["warnings"].as_array().unwrap();
        let found = warnings.iter().filter(|warning| warning["code"] == "not_checked").count();
        assert_eq!(found, unchecked, "{report}");
    }
}

#[tokio::test]
async fn arguments_arrive_as_they_were_sent_or_not_at_all() {
    let server = Server::start().await;
    server.create(function_tool("echo", "echo")).await;
    for (args, part) in [
        (r#"{"n": 18446744073709551616}"#, "the integer `18446744073709551616` does not fit in 64 bits"),
        (r#"{"n": [-9223372036854775809]}"#, "send it as a string"),
        (r#"{"n": 1, "n": 2}"#, "duplicate field `n`"),
        (r#"{"a": {"n": 1, "n": 1}}"#, "duplicate field `n`"),
    ] {
        let request = server.request(Method::POST, "/api/tools/echo/invoke");
        let (status, answer) = send(request.body(format!(r#"{{"args": {args}}}"#))).await;
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && message.contains(part), "{args}: {status} {answer}");
    }
    let largest = json!({"n": u64::MAX, "m": i64::MIN, "f": 1e30, "text": "18446744073709551616"});
    let (_, answer) = server.invoke("echo", largest.clone()).await;
    assert_eq!(answer["value"], largest, "{answer}");
}
