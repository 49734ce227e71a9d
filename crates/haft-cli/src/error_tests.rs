//! Tests of exit codes and of what people read.

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
    let codes = |wanted: Exit| {
        let codes = ErrorCode::ALL.iter().filter(|code| exit(code) == wanted);
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
fn problems_stand_on_their_own_lines() {
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
fn an_error_says_its_cause_and_a_hint() {
    let source = std::io::Error::new(std::io::ErrorKind::AddrInUse, "in use");
    let taken = CliError::Listen { addr: ([127, 0, 0, 1], 80).into(), source };
    insta::assert_snapshot!(taken.text(), @r"
    cannot listen on `127.0.0.1:80`: in use

    hint: another program listens there; choose another address with `--addr HOST:PORT`
    ");
    let kept = CliError::Kept {
        error: Box::new(api(409, "conflict", "changed")),
        path: "/t/x".into(),
        tool: "a".into(),
    };
    assert_eq!(kept.exit(), Exit::Conflict);
    insta::assert_snapshot!(kept.json(), @r#"{"status":"error","error":{"code":"conflict","message":"changed","hint":"your text is kept in `/t/x`; repeat with `haft tool edit a --from /t/x`"}}"#);
    let mut fault = api(500, "internal", "an internal error occurred");
    if let CliError::Api(error) = &mut fault {
        error.request_id = Some("r-1".into());
    }
    insta::assert_snapshot!(fault.text(), @"an internal error occurred (request r-1)");
}
