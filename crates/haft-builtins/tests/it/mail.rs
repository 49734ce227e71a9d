//! `send_email` against a real mail server on loopback.

use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_testkit::smtp::{SmtpBehavior, SmtpServer};
use serde_json::{Value, json};

use crate::harness::{Rig, Setup};

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

fn rig(all: &[(String, String)], time: Option<Duration>) -> Rig {
    let pairs: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    Rig::new(&Setup { stored: &pairs, time, ..Setup::default() })
}

fn letter() -> Value {
    json!({"to": "ann@example.com", "subject": "Hello", "body": "How are you?"})
}

#[tokio::test]
async fn a_message_arrives_encrypted_and_whole() {
    for (manner, tls) in [(SmtpBehavior::StartTls, "starttls"), (SmtpBehavior::Tls, "tls")] {
        let server = SmtpServer::start(manner).await.unwrap();
        let rig = rig(&settings(&server, &[("SMTP_TLS", tls)]), None);
        let args = json!({
            "to": ["Änn <ann@example.com>", "bob@example.com"], "cc": "\"C, C\" <c@example.com>, d@example.com",
            "bcc": "hidden@example.com", "reply_to": "office@example.com", "subject": "Grüße", "body": "<b>Hi</b>\n.\nend",
            "is_html": true,
        });
        let value = rig.call("send_email", args).await.unwrap();
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
async fn settings_say_who_sends() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let rig = rig(&settings(&server, &[("SMTP_FROM", "Reports <reports@example.com>")]), None);
    rig.call("send_email", letter()).await.unwrap();
    let mail = server.mails().remove(0);
    assert_eq!(mail.from, "reports@example.com");
    assert!(mail.text.contains("From: Reports <reports@example.com>\n"), "{}", mail.text);
}

#[tokio::test]
async fn nothing_goes_out_in_clear_unless_told() {
    let server = SmtpServer::start(SmtpBehavior::Plain).await.unwrap();
    let (code, message) = rig(&settings(&server, &[]), None).fail("send_email", letter()).await;
    assert_eq!(code, ErrorCode::Network);
    insta::assert_snapshot!(message, @"the mail server `localhost` offers no STARTTLS, and nothing is sent in clear: set `SMTP_TLS` to `tls` where it speaks TLS from the start, or to `none` to do without");
    assert_eq!((server.mails(), server.clear_lines()), (vec![], vec!["EHLO localhost".to_owned()]));

    rig(&settings(&server, &[("SMTP_TLS", "none")]), None).call("send_email", letter()).await.unwrap();
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn a_certificate_has_to_be_trusted_and_of_the_right_name() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    for change in [("SMTP_CA", ""), ("SMTP_HOST", "127.0.0.1")] {
        let (code, message) = rig(&settings(&server, &[change]), None).fail("send_email", letter()).await;
        assert!(code == ErrorCode::Network && message.contains("certificate"), "{change:?} {code} {message}");
    }
    assert!(server.mails().is_empty());
    assert!(server.clear_lines().iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"));
}

#[tokio::test]
async fn a_server_that_refuses_says_why() {
    let server = SmtpServer::start(SmtpBehavior::NoRecipients).await.unwrap();
    let settings_of = |server: &SmtpServer| settings(server, &[("SMTP_TLS", "none")]);
    let error = rig(&settings_of(&server), None).call("send_email", letter()).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false));
    insta::assert_snapshot!(error.message, @"the mail server refused the recipient `ann@example.com`: 550 5.1.1 no such user here");

    let server = SmtpServer::start(SmtpBehavior::NoLogins).await.unwrap();
    let error = rig(&settings_of(&server), None).call("send_email", letter()).await.unwrap_err();
    assert_eq!(error.for_model.as_deref(), Some("the mail server refused the login"));
}

#[tokio::test]
async fn a_recipient_that_is_refused_is_named_and_nobody_gets_the_message() {
    let server = SmtpServer::start(SmtpBehavior::SomeRecipients).await.unwrap();
    let rig = rig(&settings(&server, &[("SMTP_TLS", "none")]), None);
    let to = |to: &[&str]| json!({"to": to, "subject": "Hello", "body": "How are you?"});
    let error = rig.call("send_email", to(&["ann@example.com", "no@example.com"])).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false));
    assert_eq!(error.details.as_deref(), Some(&json!({"refused": ["no@example.com"], "sent": false})));
    insta::assert_snapshot!(error.model_text(), @"Tool call failed: the mail server refused the recipient `no@example.com`: 550 5.1.1 no such user here; the others did not get it either: nothing was sent");

    let many: Vec<String> = (0..8).map(|number| format!("no{number}@example.com")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let error = rig.call("send_email", to(&many)).await.unwrap_err();
    insta::assert_snapshot!(error.message, @"the mail server refused these recipients: `no0@example.com`: 550 5.1.1 no such user here; `no1@example.com`: 550 5.1.1 no such user here; `no2@example.com`: 550 5.1.1 no such user here; `no3@example.com`: 550 5.1.1 no such user here; `no4@example.com`: 550 5.1.1 no such user here; and 3 more");
    assert_eq!(server.mails(), []);
    rig.call("send_email", to(&["ann@example.com"])).await.unwrap();
    assert_eq!(server.mails().len(), 1);
}

#[tokio::test]
async fn what_will_not_work_later_is_not_retryable() {
    let server = SmtpServer::start(SmtpBehavior::Plain).await.unwrap();
    let error = rig(&settings(&server, &[("SMTP_TLS", "tls")]), None).call("send_email", letter()).await;
    let error = error.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::Network, false), "{error}");
    assert!(error.message.contains("`SMTP_TLS` has to be"), "{error}");

    let rig = rig(&settings(&server, &[("SMTP_TLS", "none")]), None);
    let letter = json!({"to": "änn@example.com", "subject": "x", "body": "y"});
    let error = rig.call("send_email", letter).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false), "{error}");
}

#[tokio::test]
async fn a_server_that_hangs_or_is_gone_is_not_waited_for() {
    let server = SmtpServer::start(SmtpBehavior::Silent).await.unwrap();
    let time = Some(Duration::from_millis(500));
    let error = rig(&settings(&server, &[]), time).call("send_email", letter()).await.unwrap_err();
    assert_eq!(
        (error.code, error.retryable, error.message.as_str()),
        (ErrorCode::Timeout, false, "the mail server did not answer in time")
    );

    let all = settings(&server, &[]);
    drop(server);
    let (code, message) = rig(&all, None).fail("send_email", letter()).await;
    assert!(
        code == ErrorCode::Network && message.starts_with("could not connect to the mail server: "),
        "{code} {message}"
    );
}

#[tokio::test]
async fn a_server_that_never_ends_is_not_listened_to() {
    for (manner, tls) in [
        (SmtpBehavior::Endless, "none"),
        (SmtpBehavior::Endless, "starttls"),
        (SmtpBehavior::EndlessTls, "tls"),
    ] {
        let server = SmtpServer::start(manner).await.unwrap();
        let rig = rig(&settings(&server, &[("SMTP_TLS", tls)]), None);
        let (code, message) = rig.fail("send_email", letter()).await;
        let expected = "could not connect to the mail server: it sent more than 1 MiB";
        assert_eq!((code, message.as_str()), (ErrorCode::Network, expected), "{tls}");
    }
}

#[tokio::test]
async fn the_guard_holds_for_mail_too() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let all = settings(&server, &[]);
    let pairs: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let rig = Rig::new(&Setup { stored: &pairs, shut: true, ..Setup::default() });
    let error = rig.call("send_email", letter()).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::EgressRefused);
    assert_eq!(error.for_model.as_deref(), Some("the mail server is not allowed as a destination"));
    assert_eq!(server.clear_lines(), Vec::<String>::new());
}

#[tokio::test]
async fn a_tenant_never_gets_the_password_of_the_platform() {
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
    let rig = Rig::new(&Setup { stored: &stored, platform: &platform, ..Setup::default() });
    rig.call("send_email", letter()).await.unwrap();
    let mail = server.mails().remove(0);
    assert_eq!((mail.from.as_str(), mail.login), ("t@example.com", None));
}

#[tokio::test]
async fn the_platform_serves_tenants_without_settings() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let all = settings(&server, &[]);
    let pairs: Vec<(&str, &str)> = all.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let rig = Rig::new(&Setup { platform: &pairs, ..Setup::default() });
    let (outcome, seen) = rig.call_with_secrets("send_email", letter()).await;
    outcome.unwrap();
    // The password is kept out of the outcome; where mail goes and who sends it is no secret.
    assert!(seen.iter().any(|secret| secret.expose() == PASSWORD));
    assert!(!seen.iter().any(|secret| ["localhost", "robot@example.com"].contains(&secret.expose())));
}

#[tokio::test]
async fn arguments_cannot_become_headers_or_commands() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    let rig = rig(&settings(&server, &[]), None);
    let many: Vec<String> = (0..30).map(|index| format!("a{index}@example.com")).collect();
    for (change, part) in [
        (json!({"subject": "x\r\nBcc: evil@example.com"}), "`subject` has a line break"),
        (json!({"subject": "x\u{0}"}), "`subject` has a line break"),
        (json!({"subject": "s".repeat(501)}), "subject"),
        (json!({"to": "ann@example.com\r\nBcc: evil@example.com"}), "is not an e-mail address"),
        (json!({"to": "ann@example.com>\r\nDATA"}), "is not an e-mail address"),
        (json!({"to": "not an address"}), "`to`: `not an address` is not an e-mail address"),
        (json!({"to": []}), "InvalidArguments"),
        (json!({"to": "a@example.com, ,"}), "is not an e-mail address"),
        (json!({"to": many, "cc": many}), "more than 50 recipients"),
        (json!({"reply_to": "x\r\ny@example.com"}), "`reply_to`"),
        (json!({"body": "x".repeat(1024 * 1024 + 1)}), "`body` has more than 1048576 bytes"),
    ] {
        let mut args = letter();
        args.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        let (code, message) = rig.fail("send_email", args).await;
        assert!(
            code == ErrorCode::InvalidArguments && (message.contains(part) || part == "InvalidArguments"),
            "{part}: {message}"
        );
    }
    assert!(server.mails().is_empty());
    let mut args = letter();
    args["body"] = json!("a\r\n.\r\nMAIL FROM:<evil@example.com>\r\n");
    rig.call("send_email", args).await.unwrap();
    assert_eq!(server.mails().len(), 1, "a dot on a line of its own does not end the message");
}

#[tokio::test]
async fn what_is_missing_or_wrong_in_the_settings_is_named() {
    let server = SmtpServer::start(SmtpBehavior::StartTls).await.unwrap();
    for (change, code, part) in [
        (("SMTP_HOST", ""), ErrorCode::SecretMissing, "`SMTP_HOST` is missing"),
        (("SMTP_PASS", ""), ErrorCode::SecretMissing, "`SMTP_PASS` is missing"),
        (("SMTP_USER", ""), ErrorCode::SecretMissing, "`SMTP_USER` is missing"),
        (
            ("SMTP_USER", "robot"),
            ErrorCode::ExecutionFailed,
            "`SMTP_USER` is not an e-mail address; set `SMTP_FROM`",
        ),
        (("SMTP_FROM", "x\r\ny"), ErrorCode::ExecutionFailed, "`SMTP_FROM` is not an e-mail address"),
        (("SMTP_PORT", "0"), ErrorCode::ExecutionFailed, "`SMTP_PORT` is not a port"),
        (("SMTP_TLS", "maybe"), ErrorCode::ExecutionFailed, "it has to be `starttls`, `tls` or `none`"),
        (("SMTP_CA", "garbage"), ErrorCode::ExecutionFailed, "SMTP_CA"),
    ] {
        let error = rig(&settings(&server, &[change]), None).call("send_email", letter()).await.unwrap_err();
        assert!(error.code == code && error.message.contains(part), "{change:?}: {error}");
    }
}
