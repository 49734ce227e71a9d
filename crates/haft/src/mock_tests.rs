//! Outcomes of mocked tools, and the report of unmet expectations.

use std::panic::{AssertUnwindSafe, catch_unwind};

use haft_core::outcome::{CallError, ErrorCode};
use serde_json::json;

use super::*;
use crate::Failure;

async fn call(mock: &MockTools, tool: &str, args: Value) -> Result<Value, CallError> {
    mock.tools().execute(tool, args).await
}

/// Returns the panic message of a dropped mock, without the line numbers of this file.
fn failure(mock: MockTools) -> Option<String> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let failure = catch_unwind(AssertUnwindSafe(|| drop(mock)));
    std::panic::set_hook(hook);
    failure.err().map(|payload| without_lines(payload.downcast_ref::<String>().unwrap()))
}

fn without_lines(text: &str) -> String {
    let mut parts = text.split("mock_tests.rs:");
    let first = parts.next().unwrap().to_owned();
    let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
    rest.fold(first, |text, part| text + "mock_tests.rs:N" + part)
}

#[tokio::test]
async fn the_first_matching_expectation_responds() {
    let mock = MockTools::new();
    mock.on("find").with(json!({"query": "rust"})).returns(json!(["a"]));
    mock.on("find").with(|args: &Value| args["limit"] == 1).returns("one");
    mock.on("find").fails(Failure::new("busy").retryable()).times(1);
    mock.on("find").returns_in_turn([1, 2]);
    mock.on("other").fails("no");
    mock.on("third").fails(CallError::new(ErrorCode::Network, "gone")).any_times();
    for (tool, args, expected) in [
        ("find", json!({"query": "rust"}), Ok(json!(["a"]))),
        ("find", json!({"query": "go", "limit": 1}), Ok(json!("one"))),
        ("find", json!({}), Err(("busy", true))),
        ("find", json!({}), Ok(json!(1))),
        ("find", json!({"query": "rust"}), Ok(json!(["a"]))),
        ("find", json!({}), Ok(json!(2))),
        ("other", json!({}), Err(("no", false))),
        ("third", json!({}), Err(("gone", true))),
    ] {
        let outcome = call(&mock, tool, args).await;
        let outcome = outcome.as_ref().map_err(|error| (error.message.as_str(), error.retryable));
        assert_eq!(outcome.cloned(), expected, "{tool}");
    }
    assert_eq!(mock.calls("other"), [json!({})]);
    assert_eq!(mock.calls("find").len(), 6);
    mock.verify();
    assert_eq!(failure(mock), None);
}

#[tokio::test]
async fn a_delay_holds_back_one_call_only() {
    let mock = MockTools::new();
    mock.on("slow").delay(Duration::from_mins(10)).returns(1);
    mock.on("soon").delay(Duration::from_millis(1)).returns(2);
    let tools = mock.tools();
    let slow = tokio::spawn(async move { tools.execute("slow", json!({})).await });
    while mock.calls("slow").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert_eq!(call(&mock, "soon", json!({})).await, Ok(json!(2)));
    assert!(!slow.is_finished());
    slow.abort();
}

#[tokio::test]
async fn missing_calls_are_reported() {
    let mock = MockTools::new();
    mock.on("find").with(json!({"query": "rust"})).times(2);
    mock.on("find").with(|args: &Value| args["query"] == "go");
    mock.on("mail").returns("sent");
    mock.on("unused").any_times();
    call(&mock, "find", json!({"query": "rust"})).await.unwrap();
    insta::assert_snapshot!(failure(mock).unwrap(), @r#"
    MockTools: the calls do not match the expectations

    unmet expectations:
      `find` with {"query":"rust"} (crates/haft/src/mock_tests.rs:N): expected 2 calls, got 1
        calls of `find`:
          {"query":"rust"}
      `find` with arguments that match its predicate (crates/haft/src/mock_tests.rs:N): expected at least 1 call, got 0
        calls of `find`:
          {"query":"rust"}
      `mail` with any arguments (crates/haft/src/mock_tests.rs:N): expected at least 1 call, got 0
        `mail` was not called
    "#);
}

#[tokio::test]
async fn an_unexpected_call_is_reported_with_the_closest_expectation() {
    let mock = MockTools::new();
    mock.on("find").with(json!({"query": "rust", "filter": {"tags": ["a", "b"]}, "limit": 5}));
    mock.on("find").with(json!({"query": "go"}));
    let args = json!({"query": "rust", "filter": {"tags": ["a", "c", "d"]}, "page": 2});
    let error = call(&mock, "find", args).await.unwrap_err();
    insta::assert_snapshot!(without_lines(&error.message), @r#"
    MockTools: unexpected call
    closest expectation: `find` with {"query":"rust","filter":{"tags":["a","b"]},"limit":5} (crates/haft/src/mock_tests.rs:N)
      filter.tags[1]: expected "b", got "c"
      filter.tags[2]: expected nothing, got "d"
      limit: expected 5, got nothing
      page: expected nothing, got 2
    "#);
    call(&mock, "find", json!({"query": "go"})).await.unwrap();
    insta::assert_snapshot!(failure(mock).unwrap(), @r#"
    MockTools: the calls do not match the expectations

    unmet expectations:
      `find` with {"query":"rust","filter":{"tags":["a","b"]},"limit":5} (crates/haft/src/mock_tests.rs:N): expected at least 1 call, got 0
        calls of `find`:
          {"query":"rust","filter":{"tags":["a","c","d"]},"page":2}
          {"query":"go"}

    unexpected calls:
      `find` with {"query":"rust","filter":{"tags":["a","c","d"]},"page":2}
        closest expectation: `find` with {"query":"rust","filter":{"tags":["a","b"]},"limit":5} (crates/haft/src/mock_tests.rs:N)
          filter.tags[1]: expected "b", got "c"
          filter.tags[2]: expected nothing, got "d"
          limit: expected 5, got nothing
          page: expected nothing, got 2
    "#);
}

#[tokio::test]
async fn too_many_calls_are_reported() {
    let mock = MockTools::new();
    mock.on("delete").never();
    mock.on("find").times(1);
    mock.on("mail").with(|args: &Value| args["to"] == "ada").any_times();
    call(&mock, "find", json!({})).await.unwrap();
    for (tool, args) in [("delete", json!({"id": 7})), ("find", json!({})), ("mail", json!({"to": "bob"}))] {
        assert_eq!(call(&mock, tool, args).await.unwrap_err().code, ErrorCode::ExecutionFailed);
    }
    insta::assert_snapshot!(failure(mock).unwrap(), @r#"
    MockTools: the calls do not match the expectations

    unexpected calls:
      `delete` with {"id":7}
        too many calls of `delete` with any arguments (crates/haft/src/mock_tests.rs:N): expected no calls
      `find` with {}
        too many calls of `find` with any arguments (crates/haft/src/mock_tests.rs:N): expected 1 call
      `mail` with {"to":"bob"}
        does not match `mail` with arguments that match its predicate (crates/haft/src/mock_tests.rs:N)
    "#);
}

#[tokio::test]
async fn the_report_is_bounded() {
    let mock = MockTools::new();
    mock.on("find").never();
    for number in 0..12 {
        let long = "x".repeat(if number == 0 { 5000 } else { 1 });
        call(&mock, "find", json!({"number": number, "text": long})).await.unwrap_err();
    }
    let failure = failure(mock).unwrap();
    assert!(failure.len() < 4000, "{failure}");
    assert!(failure.contains("… and 2 more"), "{failure}");
}

fn real() -> Tools {
    let tools = Tools::new();
    let function = MockTools::new().function("x");
    for name in ["find", "mail"] {
        let schema = json!({"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]});
        let def = ToolDef::from_parts::<Value>(name, "Real.", Arc::clone(&function)).input_schema(schema);
        tools.register(def.output_schema(json!({"type": "string"}))).unwrap();
    }
    tools
}

#[tokio::test]
async fn a_mock_of_real_tools_validates_arguments_and_values() {
    let mock = MockTools::from_tools(&real());
    mock.on("find").returns_in_turn([json!("found"), json!(5)]);
    let error = call(&mock, "find", json!({"id": "x"})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidArguments);
    assert_eq!(call(&mock, "find", json!({"id": 1})).await, Ok(json!("found")));
    assert_eq!(call(&mock, "find", json!({"id": 2})).await.unwrap_err().code, ErrorCode::InvalidOutput);
    assert_eq!(call(&mock, "absent", json!({})).await.unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(mock.calls("find"), [json!({"id": "x"}), json!({"id": 1}), json!({"id": 2})]);
    call(&mock, "mail", json!({"id": 3})).await.unwrap_err();
    insta::assert_snapshot!(failure(mock).unwrap(), @r#"
    MockTools: the calls do not match the expectations

    unexpected calls:
      `find` with {"id":"x"}
        rejected: invalid arguments: /id: expected an integer, got "x"
      `absent` with {}
        rejected: tool `absent` not found
      `mail` with {"id":3}
        no expectation for `mail`
    "#);
}

#[tokio::test]
async fn a_rejection_can_be_expected() {
    let mock = MockTools::from_tools(&real());
    mock.on("find").with(json!({"id": "x"})).rejected();
    mock.on("find").with(json!({"id": "y"})).rejected();
    mock.on("mail").returns("sent");
    for id in ["x", "z"] {
        call(&mock, "find", json!({"id": id})).await.unwrap_err();
    }
    // A rejected call does not meet an expectation of the tool.
    call(&mock, "mail", json!({})).await.unwrap_err();
    insta::assert_snapshot!(failure(mock).unwrap(), @r#"
    MockTools: the calls do not match the expectations

    unmet expectations:
      `find` with {"id":"y"}, rejected (crates/haft/src/mock_tests.rs:N): expected at least 1 call, got 0
        calls of `find`:
          {"id":"x"}
          {"id":"z"}
      `mail` with any arguments (crates/haft/src/mock_tests.rs:N): expected at least 1 call, got 0
        calls of `mail`:
          {}

    unexpected calls:
      `find` with {"id":"z"}
        rejected: invalid arguments: /id: expected an integer, got "z"
      `mail` with {}
        rejected: invalid arguments: missing required property `id`
    "#);
}

#[test]
fn an_unknown_or_invalid_name_fails_at_once() {
    let check = |begin: &dyn Fn()| {
        let payload = catch_unwind(AssertUnwindSafe(begin)).unwrap_err();
        payload.downcast_ref::<String>().unwrap().clone()
    };
    insta::assert_snapshot!(check(&|| _ = MockTools::from_tools(&real()).on("absent")), @"MockTools: tool `absent` not found; known tools: find, mail");
    insta::assert_snapshot!(check(&|| _ = MockTools::new().on("a b")), @"MockTools: cannot register tool `a b`: tool name `a b` contains ' '; allowed: letters, digits, `-` and `_`");
}

#[tokio::test]
async fn a_failure_is_reported_once() {
    let mock = MockTools::new();
    mock.on("find");
    let first = catch_unwind(AssertUnwindSafe(|| mock.verify()));
    assert!(first.is_err());
    assert_eq!(failure(mock), None);
}

#[tokio::test]
async fn defaults_of_a_real_schema_may_be_left_out() {
    let tools = Tools::new();
    let schema = json!({"type": "object", "properties": {"q": {"type": "string"}, "limit": {"type": "integer", "default": 10}}});
    let def =
        ToolDef::from_parts::<Value>("find", "Real.", MockTools::new().function("x")).input_schema(schema);
    tools.register(def).unwrap();
    let mock = MockTools::from_tools(&tools);
    mock.on("find").with(json!({"q": "x"})).times(2);
    for args in [json!({"q": "x"}), json!({"q": "x", "limit": 10})] {
        call(&mock, "find", args).await.unwrap();
    }
    assert!(call(&mock, "find", json!({"q": "x", "limit": 5})).await.is_err());
    assert!(failure(mock).unwrap().contains("limit: expected nothing, got 5"));
}

#[tokio::test]
async fn a_call_is_recorded_even_if_the_predicate_panics() {
    let mock = MockTools::new();
    mock.on("find").with(|args: &Value| args["x"] == 1 || panic!("x is {}", args["x"]));
    call(&mock, "find", json!({"x": 2})).await.unwrap_err();
    assert_eq!(mock.calls("find"), [json!({"x": 2})]);
    drop(catch_unwind(AssertUnwindSafe(|| mock.verify())));
}

#[tokio::test]
async fn a_mock_rejects_what_the_real_set_rejects() {
    let elevated = || ToolDef::new("drop_table", |_: Value| async {}).elevated();
    let strict = Tools::builder().tool(elevated()).deny_elevated().build().unwrap();
    let mock = MockTools::from_tools(&strict);
    mock.on("drop_table").rejected();
    let error = call(&mock, "drop_table", json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ApprovalRequired);
    mock.verify();

    let mock = MockTools::from_tools(&Tools::builder().tool(elevated()).build().unwrap());
    mock.on("drop_table").returns(1);
    assert_eq!(call(&mock, "drop_table", json!({})).await.unwrap(), 1);
}
