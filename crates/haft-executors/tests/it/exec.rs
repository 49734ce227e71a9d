//! `exec` tools with real processes in the sandbox.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor as _};
use haft_core::id::CallId;
use haft_core::implementation::Implementation;
use haft_core::name::{TenantId, ToolName};
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_core::spec::ToolSpec;
use haft_executors::exec::ExecExecutor;
use haft_executors::process::Processes;
use serde_json::{Value, json};

struct Secrets;

impl SecretSource for Secrets {
    fn secret<'a>(
        &'a self,
        _tenant: &'a TenantId,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Secret>, SecretError>> {
        let found = (name == "API_KEY").then(|| Secret::new("s3cret".to_owned()));
        Box::pin(std::future::ready(Ok(found)))
    }
}

async fn call(implementation: Value, args: Value) -> Outcome {
    call_within(Duration::from_mins(1), implementation, args).await
}

/// Runs an `exec` tool with the arguments `text` and `count` once.
async fn call_within(time: Duration, implementation: Value, args: Value) -> Outcome {
    let home = tempfile::tempdir().unwrap();
    let executor = ExecExecutor::new(Processes::with_folder(home.path()).unwrap());
    let implementation: Implementation = serde_json::from_value(implementation).unwrap();
    let mut spec = ToolSpec::new(ToolName::new("tool").unwrap(), implementation);
    spec.input_schema =
        json!({"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}})
            .into();
    spec.sandbox = true;
    let spec = Arc::new(spec);
    assert_eq!(executor.examine(&spec).await, []);
    let prepared = executor.prepare(&spec, None).unwrap_or_else(|problems| panic!("{problems:?}"));
    let (id, tenant) = (CallId(uuid::Uuid::nil()), TenantId::new("default").unwrap());
    let context = CallContext::new(id, tenant, Instant::now() + time, Arc::new(Secrets));
    prepared.run(&context, args.as_object().unwrap()).await
}

const HOSTILE: [&str; 6] =
    ["a b", "'; touch pwned; '", "$(id) `id` ${HOME}", "\"\\\n*", "{{count}} ${API_KEY}", "ä ☃"];

#[tokio::test]
async fn each_element_of_argv_is_one_argument() {
    let tool =
        json!({"type": "exec", "argv": ["printf", "%s|", "{{text}}", "{{count}}", "x{{text}}", "$HOME"]});
    for text in HOSTILE {
        let value = call(tool.clone(), json!({"text": text, "count": -2})).await;
        assert_eq!(value, Ok(json!(format!("{text}|-2|x{text}|$HOME|"))));
    }
    assert_eq!(call(tool.clone(), json!({})).await, Ok(json!("x|$HOME|")));
    assert_eq!(call(tool, json!({"text": "-v"})).await.unwrap_err().code, ErrorCode::Template);
}

#[tokio::test]
async fn standard_input_and_environment_reach_the_process() {
    for program in [
        json!({"argv": ["sh", "-c", "cat; printf '%s' \"$KEY\""]}),
        json!({"command": "cat; printf '%s' \"$KEY\""}),
    ] {
        let mut tool = json!({"type": "exec", "stdin": "{{text}}\n", "env": {"KEY": "{{count}} ${API_KEY}"}});
        tool.as_object_mut().unwrap().extend(program.as_object().unwrap().clone());
        for text in HOSTILE {
            let value = call(tool.clone(), json!({"text": text, "count": 1})).await.unwrap();
            assert_eq!(value, json!(format!("{text}\n1 s3cret")), "{tool}");
        }
    }
    let large = "x".repeat(300_000);
    let counted =
        call(json!({"type": "exec", "argv": ["wc", "-c"], "stdin": "{{text}}"}), json!({"text": large}))
            .await;
    assert_eq!(counted, Ok(json!(300_000)));
}

#[tokio::test]
async fn failures_of_a_program_are_reported() {
    let failed = call(json!({"type": "exec", "argv": ["sh", "-c", "echo why >&2; exit 3"]}), json!({}))
        .await
        .unwrap_err();
    assert_eq!(failed.code, ErrorCode::ExecutionFailed);
    assert!(failed.message.contains("exit code 3") && failed.message.contains("why"), "{}", failed.message);
    let missing = call(json!({"type": "exec", "argv": ["no-such-program"]}), json!({})).await;
    assert!(missing.is_err(), "{missing:?}");
    let late =
        call_within(Duration::from_millis(300), json!({"type": "exec", "argv": ["sleep", "60"]}), json!({}))
            .await;
    assert_eq!(late.unwrap_err().code, ErrorCode::Timeout);
    let output = call(json!({"type": "exec", "argv": ["printf", "{\"a\":[1]}"]}), json!({})).await;
    assert_eq!(output, Ok(json!({"a": [1]})));
}

#[tokio::test]
async fn a_pipe_fails_if_any_of_its_programs_fails() {
    let command = async |text: &str| call(json!({"type": "exec", "command": text}), json!({})).await;
    let error = command("sh -c 'echo lost >&2; exit 6' | cat").await.unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::ExecutionFailed, "exit code 6: lost"));
    assert_eq!(command("set +o pipefail; (exit 6) | cat").await, Ok(json!("")));
    // A reader that stops early is not a failure, except with `errexit`, which may have skipped the rest.
    assert_eq!(command("yes | head -1").await, Ok(json!("y")));
    let error = command("set -e; yes | head -1; echo never").await.unwrap_err();
    assert!(error.message.contains("SIGPIPE"), "{error}");
}

#[tokio::test]
async fn the_output_format_is_respected() {
    let print =
        |text: &str, output: &str| json!({"type": "exec", "argv": ["printf", text], "output": output});
    assert_eq!(call(print("{\"a\":[1]}", "text"), json!({})).await, Ok(json!("{\"a\":[1]}")));
    assert_eq!(call(print("42", "text"), json!({})).await, Ok(json!("42")));
    assert_eq!(call(print("42", "json"), json!({})).await, Ok(json!(42)));
    let error = call(print("x", "json"), json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::InvalidOutput);
    let body = json!({"type": "exec", "command": "echo '[1]'; exit 0", "output": "auto"});
    assert_eq!(call(body, json!({})).await, Ok(json!([1])));
}

#[tokio::test]
async fn a_failure_for_lack_of_network_has_a_hint() {
    let message = async |program: Value| {
        let mut tool = json!({"type": "exec"});
        tool.as_object_mut().unwrap().extend(program.as_object().unwrap().clone());
        call(tool, json!({})).await.unwrap_err().message
    };
    let resolving = "import socket; socket.getaddrinfo('haft.invalid', 80)";
    let hint = "(hint: the tool has no network access; set `network: true` in its definition)";
    let failed = message(json!({"argv": ["python3", "-c", resolving]})).await;
    assert!(failed.ends_with(hint), "{failed}");
    // It prints nothing.
    let silent = message(json!({"command": "curl -s http://haft.invalid"})).await;
    assert_eq!(
        silent,
        "exit code 6 (hint: it uses `curl`, but the tool has no network access; set `network: true` in its definition)"
    );
    let other = message(json!({"command": "echo why >&2; exit 3"})).await;
    assert_eq!(other, "exit code 3: why");
}
