//! Tests of exit codes and messages.

use super::*;

fn api(status: u16, code: &str, message: &str) -> CliError {
    let details = Value::Null;
    CliError::Api(Box::new(ApiError {
        status,
        code: code.into(),
        message: message.into(),
        details,
        request_id: None,
    }))
}

#[test]
fn every_code_has_its_exit() {
    let exit = |code: &ErrorCode| api(200, code.as_str(), "").exit();
    let codes = |expected: Exit| {
        let codes = ErrorCode::ALL.iter().filter(|code| exit(code) == expected);
        codes.map(|code| code.as_str()).collect::<Vec<_>>().join(" ")
    };
    insta::assert_snapshot!(codes(Exit::Failed), @"method_not_allowed internal");
    insta::assert_snapshot!(codes(Exit::NotFound), @"not_found");
    insta::assert_snapshot!(codes(Exit::Conflict), @"ambiguous_name conflict idempotency_conflict read_only disabled not_published not_ready");
    insta::assert_snapshot!(codes(Exit::Unreachable), @"overloaded rate_limited store_unavailable");
    insta::assert_snapshot!(codes(Exit::Denied), @"unauthorized forbidden policy_denied approval_required");
    insta::assert_snapshot!(codes(Exit::Invalid), @"invalid_request invalid_arguments invalid_definition invalid_page_token too_large unsupported_media_type");
    for (status, exit) in [
        (401, Exit::Denied),
        (403, Exit::Denied),
        (404, Exit::NotFound),
        (409, Exit::Conflict),
        (413, Exit::Invalid),
        (429, Exit::Unreachable),
        (500, Exit::Failed),
        (503, Exit::Unreachable),
    ] {
        assert_eq!(api(status, "new_code", "").exit(), exit, "{status}");
    }
}

#[test]
fn the_documentation_lists_every_exit() {
    let documentation = include_str!("../../../docs/cli.md");
    for code in 0..=Exit::Invalid as u8 {
        assert!(documentation.contains(&format!("\n| {code} | ")), "docs/cli.md lacks the exit code {code}");
    }
}

#[test]
fn problems_have_their_own_lines() {
    let error = CliError::Api(Box::new(ApiError {
        status: 400,
        code: "invalid_definition".into(),
        message: "the definition is not valid".into(),
        details: json!({"problems": [
            {"field": "implementation.url", "code": "x", "message": "must start with `http://` or `https://`", "line": 7},
            {"field": "name", "code": "x", "message": "is missing\u{1b}[2J"},
        ]}),
        request_id: Some("r-1".into()),
    }));
    insta::assert_snapshot!(error.text(), @r"
    the definition is not valid
      line 7: `implementation.url`: must start with `http://` or `https://`
      `name`: is missing�[2J
    ");
}

#[test]
fn an_error_has_its_cause_and_a_hint() {
    let source = std::io::Error::new(std::io::ErrorKind::AddrInUse, "in use");
    let taken = CliError::Listen { addr: ([127, 0, 0, 1], 80).into(), source };
    insta::assert_snapshot!(taken.text(), @r"
    cannot listen on `127.0.0.1:80`: in use

    hint: the address is in use; choose another one with `--addr HOST:PORT`
    ");
    let not_stored = CliError::EditNotStored {
        error: Box::new(api(409, "conflict", "changed")),
        path: "/t/x".into(),
        tool: "a".into(),
    };
    assert_eq!(not_stored.exit(), Exit::Conflict);
    insta::assert_snapshot!(not_stored.json(), @r#"{"status":"error","error":{"code":"conflict","message":"changed","hint":"the text is kept in `/t/x`; continue with `haft tool edit a --from /t/x`"}}"#);
    let mut internal = api(500, "internal", "an internal error occurred");
    if let CliError::Api(error) = &mut internal {
        error.request_id = Some("r-1".into());
    }
    insta::assert_snapshot!(internal.text(), @"an internal error occurred (request r-1)");
}

#[test]
fn connection_errors_name_the_root_cause() {
    let url = Url::parse("https://127.0.0.1:18789/").unwrap();
    let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
    insta::assert_snapshot!(CliError::unreachable(&url, refused.into()).text(), @r"
    cannot connect to https://127.0.0.1:18789: connection refused

    hint: start the server with `haft serve`, or pass `--server URL`
    ");
    let plain = rustls::Error::InvalidMessage(rustls::InvalidMessage::InvalidContentType);
    let plain = std::io::Error::new(ErrorKind::InvalidData, plain);
    insta::assert_snapshot!(CliError::unreachable(&url, plain.into()).text(), @r"
    the server at 127.0.0.1:18789 speaks http, not https

    hint: use `http://127.0.0.1:18789`
    ");
    let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
    let database = CliError::Database { address: "db.example:5432".into(), source: refused.into() };
    insta::assert_snapshot!(database.message(), @"cannot connect to PostgreSQL at db.example:5432: connection refused");
}
