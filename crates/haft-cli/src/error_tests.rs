//! Tests of exit codes and messages.

use super::*;

fn api(status: u16, code: &str, message: &str) -> CliError {
    CliError::Api(Box::new(ApiError::local(status, code, message.to_owned())))
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
    insta::assert_snapshot!(codes(Exit::Conflict), @"ambiguous_name conflict idempotency_conflict read_only disabled not_published removed not_ready");
    insta::assert_snapshot!(codes(Exit::Unreachable), @"store_unavailable");
    insta::assert_snapshot!(codes(Exit::Busy), @"overloaded rate_limited");
    insta::assert_snapshot!(codes(Exit::NotRun), @"too_deep secret_missing sandbox_unavailable");
    insta::assert_snapshot!(codes(Exit::Denied), @"unauthorized forbidden policy_denied approval_required approval_denied approval_expired credential_required");
    insta::assert_snapshot!(codes(Exit::Invalid), @"invalid_request invalid_arguments invalid_definition invalid_page_token too_large unsupported_media_type");
    for (status, exit) in [
        (401, Exit::Denied),
        (403, Exit::Denied),
        (404, Exit::NotFound),
        (409, Exit::Conflict),
        (413, Exit::Invalid),
        (429, Exit::Busy),
        (500, Exit::Failed),
        (503, Exit::Unreachable),
    ] {
        assert_eq!(api(status, "new_code", "").exit(), exit, "{status}");
    }
}

#[test]
fn the_documentation_lists_every_exit() {
    let documentation = include_str!("../../../docs/cli.md");
    for code in 0..=Exit::Differences as u8 {
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
        tool: None,
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
        command: "haft tool edit a".into(),
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
    let plain = std::io::Error::other(std::io::Error::new(ErrorKind::InvalidData, plain));
    insta::assert_snapshot!(CliError::unreachable(&url, plain.into()).text(), @r"
    the server at 127.0.0.1:18789 speaks http, not https

    hint: use `http://127.0.0.1:18789`
    ");
    let refused = std::io::Error::from(ErrorKind::ConnectionRefused);
    let database = CliError::Database { address: "db.example:5432".into(), source: refused.into() };
    insta::assert_snapshot!(database.message(), @"cannot connect to PostgreSQL at db.example:5432: connection refused");
}

#[test]
fn a_home_folder_that_does_not_open_names_the_cause() {
    let hint = |message: &str| {
        let source = std::io::Error::other(message.to_owned()).into();
        CliError::Open { home: "/srv/haft".into(), source }.hint().unwrap_or_default()
    };
    insta::assert_snapshot!(hint("(code: 26) file is not a database"), @"restore a backup of `/srv/haft/haft.db`, or move it away and run `haft reindex`; status, calls and secrets are then lost");
    insta::assert_snapshot!(hint("No space left on device (os error 28)"), @"the disk of `/srv/haft` is full; free some space and try again");
    insta::assert_snapshot!(hint("permission denied"), @"check the home folder with `haft doctor`");
}

#[test]
fn joined_problems_are_listed_one_per_line_with_warnings() {
    let error = CliError::Api(Box::new(ApiError {
        details: json!({
            "problems": [
                {"field": "name", "code": "x", "message": "is empty", "line": 1},
                {"field": "version", "code": "x", "message": "is odd", "line": 2},
            ],
            "warnings": [{"field": "defalt", "code": "x", "message": "unknown field, ignored", "line": 3}],
        }),
        ..ApiError::local(
            400,
            "invalid_definition",
            "line 1: `name`: is empty; line 2: `version`: is odd".to_owned(),
        )
    }));
    insta::assert_snapshot!(error.text(), @r"
    2 problems:
      line 1: `name`: is empty
      line 2: `version`: is odd
      warning: line 3: `defalt`: unknown field, ignored
    ");
}

#[test]
fn hints_name_the_tool() {
    let hint = |code: &str| api(409, code, "").about_tool("web:my tool").hint().unwrap_or_default();
    assert_eq!(
        hint("not_published"),
        "publish it with `haft tool publish 'web:my tool'`, or call it with `--mode debug`"
    );
    assert_eq!(hint("invalid_arguments"), "show the arguments with `haft tool show 'web:my tool'`");
}

#[test]
fn a_failed_call_shows_the_beginning_of_the_response() {
    let failed = |body: &str| CliError::CallFailed {
        code: "http_status".into(),
        message: "GET https://x.test returned 500".into(),
        details: json!({"status": 500, "body": body}),
    };
    insta::assert_snapshot!(failed(" out of\u{1b}cheese ").text(), @r"
    the call failed: GET https://x.test returned 500
      response: out of�cheese
    ");
    assert!(failed(&"x".repeat(10_000)).text().chars().count() < 700);
    assert_eq!(failed("  ").text(), "the call failed: GET https://x.test returned 500");
}
