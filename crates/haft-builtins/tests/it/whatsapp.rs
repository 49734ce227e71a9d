//! `send_whatsapp` against a stub of the Cloud API.

use haft_core::outcome::ErrorCode;
use haft_testkit::upstream::Upstream;
use haft_testkit::upstream::axum::Router;
use haft_testkit::upstream::axum::http::StatusCode;
use haft_testkit::upstream::axum::routing::post;
use serde_json::{Value, json};

use crate::harness::{Harness, Setup};

const ACCEPTED: &str = r#"{"messaging_product": "whatsapp", "contacts": [{"input": "491701234567", "wa_id": "491701234567"}],
 "messages": [{"id": "wamid.HBgM"}]}"#;
const INVALID_TOKEN: &str = r#"{"error": {"message": "Error validating access token: secret-token", "type": "OAuthException",
 "code": 190, "fbtrace_id": "A"}}"#;
const NOT_ALLOWED: &str = r#"{"error": {"message": "(#131030) Recipient phone number not in allowed list", "type": "OAuthException",
 "code": 131030, "fbtrace_id": "A"}}"#;

async fn upstream() -> Upstream {
    let router = Router::new()
        .route("/v23.0/1/messages", post(|| async { ACCEPTED }))
        .route("/v23.0/2/messages", post(|| async { (StatusCode::UNAUTHORIZED, INVALID_TOKEN) }))
        .route("/v23.0/3/messages", post(|| async { (StatusCode::BAD_REQUEST, NOT_ALLOWED) }))
        .route("/v23.0/4/messages", post(|| async { "{}" }))
        .route("/v23.0/5/messages", post(|| async { (StatusCode::TOO_MANY_REQUESTS, "busy") }))
        .route("/v23.0/6/messages", post(|| async { (StatusCode::BAD_GATEWAY, "gone") }));
    Upstream::serve(router).await.unwrap()
}

fn message() -> Value {
    json!({"to": "+49 170 123-4567", "body": "Hello"})
}

#[tokio::test]
async fn a_message_is_sent_with_the_settings_of_one_owner() {
    let upstream = upstream().await;
    let url = upstream.url("/v23.0/");
    let stored = [
        ("WHATSAPP_PHONE_NUMBER_ID", "1"),
        ("WHATSAPP_TOKEN", "secret-token"),
        ("WHATSAPP_API_URL", url.as_str()),
    ];
    for setup in
        [Setup { stored: &stored, ..Setup::default() }, Setup { platform: &stored, ..Setup::default() }]
    {
        let (outcome, secrets) = Harness::new(&setup).call_with_secrets("send_whatsapp", message()).await;
        assert_eq!(outcome.unwrap(), json!({"sent": true, "message_id": "wamid.HBgM", "to": "491701234567"}));
        assert!(secrets.iter().any(|secret| secret.expose() == "secret-token"));
        let seen = upstream.seen().pop().unwrap();
        assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", "/v23.0/1/messages"));
        assert_eq!(seen.headers.get("authorization").map(String::as_str), Some("Bearer secret-token"));
        assert_eq!(
            serde_json::from_str::<Value>(&seen.body).unwrap(),
            json!({
                "messaging_product": "whatsapp", "recipient_type": "individual", "to": "491701234567",
                "type": "text", "text": {"preview_url": false, "body": "Hello"},
            })
        );
    }
    // A tenant that sets only the number must not get the platform's token.
    let mixed = Setup { stored: &stored[..1], platform: &stored, ..Setup::default() };
    let error = Harness::new(&mixed).call("send_whatsapp", message()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::SecretMissing);
    insta::assert_snapshot!(error.message, @"WhatsApp is not configured: `WHATSAPP_TOKEN` is missing; store a credential with that name or set the environment variable");
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn failures_name_the_reason() {
    let upstream = upstream().await;
    let url = upstream.url("/v23.0");
    let send = async |id: &str| {
        let stored = [
            ("WHATSAPP_PHONE_NUMBER_ID", id),
            ("WHATSAPP_TOKEN", "secret-token"),
            ("WHATSAPP_API_URL", &url),
        ];
        let harness = Harness::new(&Setup { stored: &stored, ..Setup::default() });
        let error = harness.call("send_whatsapp", message()).await.unwrap_err();
        assert!(!error.model_text().contains("secret-token"), "{}", error.model_text());
        let message = error.message.replace(&url, "URL");
        format!("{} {} {message} | {}", error.code, error.retryable, error.model_text().replace(&url, "URL"))
    };
    insta::assert_snapshot!(send("2").await, @"execution_failed false WhatsApp rejected the access token: Error validating access token: secret-token; store a valid `WHATSAPP_TOKEN` | Tool call failed: WhatsApp is not configured");
    insta::assert_snapshot!(send("3").await, @"http_status false WhatsApp rejected the message: (#131030) Recipient phone number not in allowed list (code 131030) | Tool call failed: WhatsApp rejected the message: (#131030) Recipient phone number not in allowed list (code 131030)");
    insta::assert_snapshot!(send("4").await, @"invalid_response false the response of WhatsApp has no message id; the message may have been sent | Tool call failed: the response of WhatsApp has no message id; the message may have been sent");
    let busy = send("5").await;
    assert!(busy.starts_with("http_status true"), "{busy}");
    let gone = send("6").await;
    assert!(gone.starts_with("http_status false"), "{gone}");
    insta::assert_snapshot!(send("+49170").await, @"execution_failed false WhatsApp is not configured: `WHATSAPP_PHONE_NUMBER_ID` is not a number; it is the id of the phone number, not the number itself | Tool call failed: WhatsApp is not configured");
}

#[tokio::test]
async fn numbers_are_checked_before_anything_is_sent() {
    let harness = Harness::new(&Setup::default());
    for to in ["0170 1234567", "12345678901234567", "hello world", "+49170/12345"] {
        let (code, _) = harness.fail("send_whatsapp", json!({"to": to, "body": "x"})).await;
        assert_eq!(code, ErrorCode::InvalidArguments, "{to}");
    }
    let (code, message) = harness.fail("send_whatsapp", message()).await;
    assert_eq!(code, ErrorCode::SecretMissing);
    assert!(message.contains("`WHATSAPP_PHONE_NUMBER_ID` is missing"), "{message}");
}
