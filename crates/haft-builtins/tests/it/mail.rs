//! `send_email` against a real mail server on loopback.

use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_testkit::smtp::{SmtpBehavior, SmtpServer};
use serde_json::{Value, json};

use crate::harness::{Harness, Setup};

const PASSWORD: &str = "correct horse";

/// The settings for a server, and further ones.
fn settings(server: &SmtpServer, more: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all = vec![
        ("SMTP_HOST".to_owned(), "localhost".to_owned()),
        ("SMTP_PORT".to_owned(), server.address.port().to_string()),
        ("SMTP_USER".to_owned(), "robot@example.com".to_owned()),
        ("SMTP_PASS".to_owned(), PASSWORD.to_owned()),
        ("SMTP_CA".to_owned(), server.certificate.clone()),
    ];
    for (name, value) in more {
        all.retain(|(known, _)| known != name);
        all.push(((*name).to_owned(), (*value).to_owned()));
    }
    all
}

fn harness_with(all: &[(String, String)], timeout: Option<Duration>) -> Harness {
    let pairs: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Harness::new(&Setup { stored: &pairs, timeout, ..Setup::default() })
}

fn email() -> Value {
    json!({"to": "ann@example.com", "subject": "Hello", "body": "How are you?"})
}

#[tokio::test]
async fn a_message_arrives_encrypted_and_whole() {
    for (behavior, tls) in [(SmtpBehavior::StartTls, "starttls"), (SmtpBehavior::Tls, "tls")] {
        let server = SmtpServer::start(behavior).await.unwrap();
        let harness = harness_with(&settings(&server, &[("SMTP_TLS", tls)]), None);
        let args = json!({
            "to": ["Änn <ann@example.com>", "bob@example.com"], "cc": "\"C, C\" <c@example.com>, d@example.com",
            "bcc": "hidden@example.com", "reply_to": "office@example.com", "subject": "Grüße", "body": "<b>Hi</b>\n.\nend",
            "is_html": true,
        });
        let value = harness.call("send_email", args).await.unwrap();
        let recipients =
            ["ann@example.com", "bob@example.com", "c@example.com", "d@example.com", "hidden@example.com"];
        assert_eq!(value["recipients"], json!(recipients));
        let mails = server.mails();
        let [mail] = mails.as_slice() else { panic!("{mails:?}") };
        assert_eq!(
            (mail.from.as_str(), mail.to.as_slice(), mail.encrypted, mail.login.clone()),
            (
                "robot@example.com",
                &recipients.map(String::from)[..],
                true,
                Some(("robot@example.com".into(), PASSWORD.into()))
            )
        );
        assert!(mail.text.contains(value["message_id"].as_str().unwrap()));
        let kept =
            mail.text.lines().filter(|line| !line.starts_with("Message-ID:") && !line.starts_with("Date:"));
        insta::allow_duplicates! {
            insta::assert_snapshot!(kept.collect::<Vec<_>>().join("\n"), @r#"
            From: robot@example.com
            Subject: =?utf-8?b?R3LDvMOfZQ==?=
            To: =?utf-8?b?w4Rubg==?= <ann@example.com>, bob@example.com
            Cc: =?utf-8?b?QywgQw==?= <c@example.com>, d@example.com
            Reply-To: office@example.com
            MIME-Version: 1.0
            Content-Type: text/html; charset=utf-8
            Content-Transfer-Encoding: 7bit

            <b>Hi</b>
            .
            end
            "#);
        }
        assert!(!server.clear_lines().iter().any(|line| line.contains("AUTH")), "{:?}", server.clear_lines());
    }
}

#[tokio::test]
async fn smtp_from_sets_the_sender() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let harness = harness_with(&settings(&server, &[("SMTP_FROM", "Reports <reports@example.com>")]), None);
    harness.call("send_email", email()).await.unwrap();
    let mail = server.mails().remove(0);
    assert_eq!(mail.from, "reports@example.com");
    assert!(mail.text.contains("From: Reports <reports@example.com>\n"), "{}", mail.text);
}

#[tokio::test]
async fn nothing_is_sent_unencrypted_by_default() {
    let server = SmtpServer::start(SmtpBehavior::Plain).await.unwrap();
    let (code, message) = harness_with(&settings(&server, &[]), None).fail("send_email", email()).await;
    assert_eq!(code, ErrorCode::Network);
    insta::assert_snapshot!(message, @"the mail server `localhost` does not support STARTTLS, so nothing was sent; set `SMTP_TLS` to `tls` if its port uses TLS from the start, or to `none` to send unencrypted");
    assert_eq!((server.mails(), server.clear_lines()), (vec![], vec!["EHLO localhost".to_owned()]));

    harness_with(&settings(&server, &[("SMTP_TLS", "none")]), None)
        .call("send_email", email())
        .await
        .unwrap();
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn the_certificate_must_be_trusted_and_match_the_host() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    for change in [("SMTP_CA", ""), ("SMTP_HOST", "127.0.0.1")] {
        let (code, message) =
            harness_with(&settings(&server, &[change]), None).fail("send_email", email()).await;
        assert!(code == ErrorCode::Network && message.contains("certificate"), "{change:?} {code} {message}");
    }
    assert!(server.mails().is_empty());
    assert!(server.clear_lines().iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"));
}

#[tokio::test]
async fn rejections_include_the_reply() {
    let server = SmtpServer::start(SmtpBehavior::NoRecipients).await.unwrap();
    let settings_of = |server: &SmtpServer| settings(server, &[("SMTP_TLS", "none")]);
    let error = harness_with(&settings_of(&server), None).call("send_email", email()).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false));
    insta::assert_snapshot!(error.message, @"the mail server rejected the recipient `ann@example.com`: 550 5.1.1 no such user here");

    let server = SmtpServer::start(SmtpBehavior::NoLogins).await.unwrap();
    let error = harness_with(&settings_of(&server), None).call("send_email", email()).await.unwrap_err();
    assert_eq!(error.for_model.as_deref(), Some("the mail server rejected the login"));
}

#[tokio::test]
async fn a_rejected_recipient_prevents_delivery_to_all() {
    let server = SmtpServer::start(SmtpBehavior::SomeRecipients).await.unwrap();
    let harness = harness_with(&settings(&server, &[("SMTP_TLS", "none")]), None);
    let to = |to: &[&str]| json!({"to": to, "subject": "Hello", "body": "How are you?"});
    let error = harness.call("send_email", to(&["ann@example.com", "no@example.com"])).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false));
    assert_eq!(error.details.as_deref(), Some(&json!({"refused": ["no@example.com"], "sent": false})));
    insta::assert_snapshot!(error.model_text(), @"Tool call failed: the mail server rejected the recipient `no@example.com`: 550 5.1.1 no such user here; the message was not sent to the others either");

    let many: Vec<String> = (0..8).map(|number| format!("no{number}@example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = harness.call("send_email", to(&many)).await.unwrap_err();
    insta::assert_snapshot!(error.message, @"the mail server rejected the recipients: `no0@example.com`: 550 5.1.1 no such user here; `no1@example.com`: 550 5.1.1 no such user here; `no2@example.com`: 550 5.1.1 no such user here; `no3@example.com`: 550 5.1.1 no such user here; `no4@example.com`: 550 5.1.1 no such user here; and 3 more");
    assert_eq!(server.mails(), []);
    harness.call("send_email", to(&["ann@example.com"])).await.unwrap();
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn permanent_errors_are_not_retryable() {
    let server = SmtpServer::start(SmtpBehavior::Plain).await.unwrap();
    let error =
        harness_with(&settings(&server, &[("SMTP_TLS", "tls")]), None).call("send_email", email()).await;
    let error = error.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::Network, false), "{error}");
    assert!(error.message.contains("set `SMTP_TLS` to"), "{error}");

    let harness = harness_with(&settings(&server, &[("SMTP_TLS", "none")]), None);
    let args = json!({"to": "änn@example.com", "subject": "x", "body": "y"});
    let error = harness.call("send_email", args).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false), "{error}");
}

#[tokio::test]
async fn a_silent_or_stopped_server_is_an_error() {
    let server = SmtpServer::start(SmtpBehavior::Silent).await.unwrap();
    let timeout = Some(Duration::from_millis(500));
    let error = harness_with(&settings(&server, &[]), timeout).call("send_email", email()).await.unwrap_err();
    assert_eq!(
        (error.code, error.retryable, error.message.as_str()),
        (ErrorCode::Timeout, false, "the mail server did not respond in time")
    );

    let all = settings(&server, &[]);
    drop(server);
    let (code, message) = harness_with(&all, None).fail("send_email", email()).await;
    assert!(
        code == ErrorCode::Network && message.starts_with("cannot connect to the mail server: "),
        "{code} {message}"
    );
}

#[tokio::test]
async fn an_endless_response_is_cut_off() {
    for (behavior, tls) in [
        (SmtpBehavior::Endless, "none"),
        (SmtpBehavior::Endless, "starttls"),
        (SmtpBehavior::EndlessTls, "tls"),
    ] {
        let server = SmtpServer::start(behavior).await.unwrap();
        let harness = harness_with(&settings(&server, &[("SMTP_TLS", tls)]), None);
        let (code, message) = harness.fail("send_email", email()).await;
        let expected = "cannot connect to the mail server: the server sent more than 1 MiB";
        assert_eq!((code, message.as_str()), (ErrorCode::Network, expected), "{tls}");
    }
}

#[tokio::test]
async fn egress_rules_apply_to_mail() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let all = settings(&server, &[]);
    let pairs: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let harness = Harness::new(&Setup { stored: &pairs, deny_loopback: true, ..Setup::default() });
    let error = harness.call("send_email", email()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused);
    assert_eq!(error.for_model.as_deref(), Some("connections to the mail server are not allowed"));
    assert_eq!(server.clear_lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_tenant_never_uses_the_platform_password() {
    let server = SmtpServer::start(SmtpBehavior::Plain).await.unwrap();
    let port = server.address.port().to_string();
    let platform = [
        ("SMTP_HOST", "mail.example.com"),
        ("SMTP_USER", "p@example.com"),
        ("SMTP_PASS", PASSWORD),
        ("SMTP_TLS", "none"),
    ];
    let stored = [
        ("SMTP_HOST", "localhost"),
        ("SMTP_PORT", port.as_str()),
        ("SMTP_TLS", "none"),
        ("SMTP_FROM", "t@example.com"),
    ];
    let harness = Harness::new(&Setup { stored: &stored, platform: &platform, ..Setup::default() });
    harness.call("send_email", email()).await.unwrap();
    let mail = server.mails().remove(0);
    assert_eq!((mail.from.as_str(), mail.login), ("t@example.com", None));
}

#[tokio::test]
async fn the_platform_serves_tenants_without_settings() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let all = settings(&server, &[]);
    let pairs: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let harness = Harness::new(&Setup { platform: &pairs, ..Setup::default() });
    let (outcome, seen) = harness.call_with_secrets("send_email", email()).await;
    outcome.unwrap();
    // The password is redacted from outcomes; the host and the sender are not secret.
    assert!(seen.iter().any(|secret| secret.expose() == PASSWORD));
    assert!(!seen.iter().any(|secret| ["localhost", "robot@example.com"].contains(&secret.expose())));
}

#[tokio::test]
async fn arguments_cannot_become_headers_or_commands() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let harness = harness_with(&settings(&server, &[]), None);
    let many: Vec<String> = (0..30).map(|index| format!("a{index}@example.com")).collect();
    for (change, part) in [
        (json!({"subject": "x\r\nBcc: evil@example.com"}), "`subject` contains a line break"),
        (json!({"subject": "x\u{0}"}), "`subject` contains a line break"),
        (json!({"subject": "s".repeat(501)}), "subject"),
        (json!({"to": "ann@example.com\r\nBcc: evil@example.com"}), "is not a valid e-mail address"),
        (json!({"to": "ann@example.com>\r\nDATA"}), "is not a valid e-mail address"),
        (json!({"to": "not an address"}), "`to`: `not an address` is not a valid e-mail address"),
        (json!({"to": []}), "InvalidArguments"),
        (json!({"to": "a@example.com, ,"}), "is not a valid e-mail address"),
        (json!({"to": many, "cc": many}), "too many recipients: the limit is 50"),
        (json!({"reply_to": "x\r\ny@example.com"}), "`reply_to`"),
        (json!({"body": "x".repeat(1024 * 1024 + 1)}), "`body` exceeds the limit of 1048576 bytes"),
    ] {
        let mut args = email();
        args.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (code, message) = harness.fail("send_email", args).await;
        assert!(
            code == ErrorCode::InvalidArguments && (message.contains(part) || part == "InvalidArguments"),
            "{part}: {message}"
        );
    }
    assert!(server.mails().is_empty());
    let mut args = email();
    args["body"] = json!("a\r\n.\r\nMAIL FROM:<evil@example.com>\r\n");
    harness.call("send_email", args).await.unwrap();
    assert_eq!(server.mails().len(), 1, "a dot on a line of its own does not end the message");
}

#[tokio::test]
async fn missing_and_invalid_settings_are_named() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    for (change, code, part) in [
        (("SMTP_HOST", ""), ErrorCode::SecretMissing, "`SMTP_HOST` is missing"),
        (("SMTP_PASS", ""), ErrorCode::SecretMissing, "`SMTP_PASS` is missing"),
        (("SMTP_USER", ""), ErrorCode::SecretMissing, "`SMTP_USER` is missing"),
        (
            ("SMTP_USER", "robot"),
            ErrorCode::ExecutionFailed,
            "`SMTP_USER` is not a valid e-mail address; set `SMTP_FROM`",
        ),
        (("SMTP_FROM", "x\r\ny"), ErrorCode::ExecutionFailed, "`SMTP_FROM` is not a valid e-mail address"),
        (("SMTP_PORT", "0"), ErrorCode::ExecutionFailed, "`SMTP_PORT` is not a valid port"),
        (("SMTP_TLS", "maybe"), ErrorCode::ExecutionFailed, "expected `starttls`, `tls` or `none`"),
        (("SMTP_CA", "garbage"), ErrorCode::ExecutionFailed, "SMTP_CA"),
    ] {
        let error =
            harness_with(&settings(&server, &[change]), None).call("send_email", email()).await.unwrap_err();
        assert!(error.code == code && error.message.contains(part), "{change:?}: {error}");
    }
}
