//! Proofs of who sends.

use haft_core::secret::Secret;
use serde_json::{Value, json};

use super::harness::{World, echo};

/// Sends with this `auth`; returns the target and the headers that were seen, and what the call hides.
async fn send(auth: Value) -> (String, Value, Vec<Secret>) {
    let server = echo().await;
    let world = World::new();
    let tool = world.tool(json!({
        "method": "POST", "url": server.url("/p/a?x=1"), "body": "{\"n\":1}", "auth": auth
    }));
    let (outcome, context) = tool.run_at(0, &json!({})).await;
    let seen = outcome.unwrap();
    (seen["target"].as_str().unwrap().to_owned(), seen["headers"].clone(), context.exposed())
}

fn hides(exposed: &[Secret], text: &str) -> bool {
    let mut masked = text.to_owned();
    haft_core::secret::scrub_text(&mut masked, exposed);
    masked != text && !masked.contains(text)
}

#[tokio::test]
async fn bearer_basic_and_keys() {
    let (_, headers, _) = send(json!({"type": "bearer", "token": "${TOKEN}"})).await;
    assert_eq!(headers["authorization"], "Bearer tok-12345");

    let (_, headers, exposed) =
        send(json!({"type": "basic", "username": "${USER}", "password": "${PASS}"})).await;
    assert_eq!(headers["authorization"], "Basic YW5uOnBhOnNzIHdvcmQ=");
    assert!(hides(&exposed, "YW5uOnBhOnNzIHdvcmQ="));

    let (_, headers, _) = send(json!({"type": "api_key", "name": "X-Api-Key", "value": "${TOKEN}"})).await;
    assert_eq!(headers["x-api-key"], "tok-12345");

    let (target, _, exposed) =
        send(json!({"type": "api_key", "name": "api key", "value": "${KEY}", "in": "query"})).await;
    assert_eq!(target, "/p/a?x=1&api%20key=k%26y%2Fsecret");
    assert!(hides(&exposed, "k&y/secret") && hides(&exposed, "k%26y%2Fsecret"));
}

#[tokio::test]
async fn signatures() {
    // The expected values were made with Python's hmac module.
    for (auth, header, expected) in [
        (
            json!({"type": "hmac", "key": "${TOKEN}"}),
            "x-signature",
            "0a6bfe690db7c2ac20f7623aa49d1588fa29deeef9ef4e53aafdb18c11632a66",
        ),
        (
            json!({"type": "hmac", "key": "${TOKEN}", "header": "X-Hub-Signature-256", "prefix": "sha256=",
                   "sign": "{method}\n{path}\n{query}\n{timestamp}\n{body}", "timestamp_header": "X-Time"}),
            "x-hub-signature-256",
            "sha256=bb204ec807b00fa1a70c6af1e50d3755fd5321fedde4b010850e9aba5668ecf6",
        ),
        (
            json!({"type": "hmac", "key": "${TOKEN}", "algorithm": "sha512", "encoding": "base64"}),
            "x-signature",
            "yAPg7VhTa1loMbImjUUStS72edd2IMLkZ9yon2rdXHItzGQYbanz8Bty9sLfsaROEzn8LYbcVuWekdojjra0ug==",
        ),
    ] {
        let (_, headers, _) = send(auth.clone()).await;
        assert_eq!(headers[header], expected, "{auth}");
        if auth.get("timestamp_header").is_some() {
            assert_eq!(headers["x-time"], "1794744000");
        }
    }
}
