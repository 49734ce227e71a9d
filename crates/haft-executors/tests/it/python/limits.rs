//! Calls that exceed their limits.

use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_sandbox::EngineName;
use serde_json::json;

use super::rig::{Rig, none_left};

#[tokio::test]
async fn each_limit_is_enforced_and_the_next_call_works() {
    let rig = Rig::with(EngineName::Bubblewrap, |settings| {
        settings.limits.memory = 96 << 20;
        settings.limits.file_size = 1 << 20;
        settings.limits.processes = 24;
    });
    let cases = [
        ("import time; time.sleep(100)", ErrorCode::Timeout, "wall_time"),
        (
            "import signal, time; signal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(1)",
            ErrorCode::Timeout,
            "wall_time",
        ),
        ("x = bytearray(400 << 20)", ErrorCode::ExecutionFailed, "memory"),
        ("import sys\nwhile True: sys.stdout.write('x' * 65536)", ErrorCode::TooLarge, "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 65536)", ErrorCode::TooLarge, "output"),
    ];
    for (body, code, limit) in cases {
        let tool = rig.script(
            &format!("if '${{bad}}' == 'yes':\n  {}\nprint('fine')", body.replace('\n', "\n  ")),
            &["bad"],
        );
        assert_eq!(tool.call(json!({"bad": "no"})).await, Ok(json!("fine")), "{body}");
        let time = Duration::from_secs(if limit == "wall_time" { 1 } else { 60 });
        let (outcome, process) = tool.call_within(time, json!({"bad": "yes"})).await;
        let error = outcome.unwrap_err();
        assert_eq!((error.code, process.limit.as_deref()), (code, Some(limit)), "{body}: {error}");
        assert_eq!(tool.call(json!({"bad": "no"})).await, Ok(json!("fine")), "{body}");
    }
    drop(rig);
    none_left("python3").await;
}

#[tokio::test]
async fn python_can_handle_limit_errors() {
    let rig = Rig::with(EngineName::Bubblewrap, |settings| {
        settings.limits.file_size = 1 << 20;
        settings.limits.work = 4 << 20;
        settings.limits.processes = 24;
    });
    for (body, expected) in [
        (
            "try:\n  open('x', 'wb').write(b'x' * (2 << 20))\nexcept OSError as e: print(e.strerror)",
            "File too large",
        ),
        (
            "try:\n  for n in range(9): open(str(n), 'wb').write(b'x' * (1 << 20))\nexcept OSError as e: print(e.strerror)",
            "No space left on device",
        ),
        (
            "import os, time\ntry:\n  while True: os.fork() or time.sleep(100)\nexcept OSError as e: print(e.strerror)",
            "Resource temporarily unavailable",
        ),
        (
            "import socket\ntry: socket.create_connection(('127.0.0.1', 9), 1)\nexcept OSError as e: print(e.strerror)",
            "Network is unreachable",
        ),
    ] {
        let tool = rig.script(body, &[]);
        for _ in 0..2 {
            let outcome = tool.call(json!({})).await;
            let text = outcome.as_ref().ok().and_then(|value| value.as_str()).unwrap_or_default();
            assert!(text.contains(expected) || text.contains("Connection refused"), "{body}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn cpu_time_is_limited_per_call() {
    let rig = Rig::new();
    let tool = rig.script(
        "import resource\nprint(resource.getrlimit(resource.RLIMIT_CPU)[0])\nsum(range(3_000_000))",
        &[],
    );
    for _ in 0..3 {
        let (outcome, _) = tool.call_within(Duration::from_secs(8), json!({})).await;
        let seconds = outcome.unwrap().as_u64().unwrap();
        let at_once = std::thread::available_parallelism().unwrap().get().max(2) as u64;
        assert!((6 * at_once..=8 * at_once).contains(&seconds), "{seconds} on {at_once}");
    }
}

#[tokio::test]
async fn a_large_output_is_truncated() {
    let rig = Rig::new();
    let tool = rig.script_with("print('x' * (10 << 20), end='')", &[], |spec| {
        spec.sandbox = true;
        spec.execution.limits.max_response_bytes = 1000;
    });
    let value = tool.call(json!({})).await.unwrap();
    let expected = format!("{}\n[output cut here: {} bytes left out]", "x".repeat(920), (10 << 20) - 920);
    assert_eq!(value, json!(expected));
}

#[tokio::test]
async fn folders_of_the_host_are_not_changed() {
    let rig = Rig::new();
    let outside = tempfile::Builder::new().prefix("haft-left-alone").tempdir_in("/tmp").unwrap();
    std::fs::write(outside.path().join("file"), "kept").unwrap();
    let tool = rig.script_with(
        "import os\nprint(open('${folder}/file').read(), os.listdir())\nopen('mine', 'w').close()",
        &["folder"],
        |spec| spec.sandbox = false,
    );
    for _ in 0..3 {
        let folder = outside.path().to_str().unwrap();
        assert_eq!(tool.call(json!({"folder": folder})).await, Ok(json!("kept []")));
    }
    assert_eq!(std::fs::read_to_string(outside.path().join("file")).unwrap(), "kept");
}
