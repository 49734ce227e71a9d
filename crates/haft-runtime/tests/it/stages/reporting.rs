//! `Logging` and `Audit`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use haft_core::outcome::ErrorCode;
use haft_runtime::stages::{Audit, AuditedCall, Logging, Stage, Timeout};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::rig::{Rig, secs};

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

/// What some calls leave in the log, without the parts that differ.
async fn logged(stage: Logging) -> String {
    let lines = Lines::default();
    let format = tracing_subscriber::fmt().with_writer(lines.clone()).with_ansi(false);
    let guard = tracing::subscriber::set_default(format.without_time().with_target(false).finish());
    let rig = Rig::new(vec![Arc::new(stage)]);
    for tool in ["quick", "fails", "slow", "panics"] {
        rig.tool(tool, json!({"timeout_ms": 3000}));
    }
    let args = json!({"city": "Oslo", "login": {"password": "hunter2"}, "text": "x".repeat(100)});
    let _ = rig.call("quick", args).await;
    let _ = rig.call("fails", json!({"api_key": "hunter2"})).await;
    let _ = rig.call("panics", json!({})).await;
    let _ = rig.call("slow", json!({"seconds": 9})).await;
    let _ = tokio::time::timeout(secs(1), rig.call("slow", json!({"seconds": 2}))).await;
    drop(guard);
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let own = text.lines().filter(|line| line.contains(" call "));
    let mut shown = String::new();
    for line in own {
        for word in line.split(' ') {
            let word = match word.split_once('=') {
                Some(("call", _)) => "call=…",
                Some(("duration_ms", _)) => "duration_ms=…",
                _ => word,
            };
            shown.push_str(word);
            shown.push(' ');
        }
        shown.truncate(shown.trim_end().len());
        shown.push('\n');
    }
    shown
}

#[tokio::test(start_paused = true)]
async fn calls_are_logged_with_caller_and_outcome() {
    insta::assert_snapshot!(logged(Logging::new()).await, @r#"
INFO call completed tool="user-created:quick@1.0.0" call=… caller="tester" duration_ms=… outcome="ok"
WARN call failed tool="user-created:fails@1.0.0" call=… caller="tester" duration_ms=… outcome="execution_failed"
WARN call failed tool="user-created:panics@1.0.0" call=… caller="tester" duration_ms=… outcome="panicked"
WARN call abandoned tool="user-created:slow@1.0.0" call=… duration_ms=… outcome="timeout"
WARN call abandoned tool="user-created:slow@1.0.0" call=… duration_ms=… outcome="cancelled"
"#);
}

#[tokio::test(start_paused = true)]
async fn logged_values_are_opt_in_truncated_and_masked() {
    insta::assert_snapshot!(logged(Logging::new().with_values(60)).await, @r#"
INFO call completed tool="user-created:quick@1.0.0" call=… caller="tester" duration_ms=… outcome="ok" arguments="{\"city\":\"Oslo\",\"login\":{\"password\":\"***\"},\"text\":\"xxxxxxxxxx…" value="{\"city\":\"Oslo\",\"login\":{\"password\":\"***\"},\"text\":\"xxxxxxxxxx…"
WARN call failed tool="user-created:fails@1.0.0" call=… caller="tester" duration_ms=… outcome="execution_failed" arguments="{\"api_key\":\"***\"}" error="the disk is full of ***"
WARN call failed tool="user-created:panics@1.0.0" call=… caller="tester" duration_ms=… outcome="panicked" arguments="{}" error="the function panicked: broken"
WARN call abandoned tool="user-created:slow@1.0.0" call=… duration_ms=… outcome="timeout"
WARN call abandoned tool="user-created:slow@1.0.0" call=… duration_ms=… outcome="cancelled"
"#);
}

#[tokio::test(start_paused = true)]
async fn every_call_is_audited_exactly_once() {
    let heard: Arc<Mutex<Vec<AuditedCall>>> = Arc::default();
    let sink = Arc::clone(&heard);
    let audit = Audit::new(move |audited| sink.lock().unwrap().push(audited));
    let stages: Vec<Arc<dyn Stage>> = vec![Arc::new(Timeout::new(secs(5)).unwrap()), Arc::new(audit)];
    let rig = Rig::new(stages);
    for tool in ["quick", "fails", "slow", "panics"] {
        rig.tool(tool, json!({}));
    }
    for (tool, args) in [
        ("quick", json!({})),
        ("fails", json!({})),
        ("panics", json!({})),
        ("slow", json!({"seconds": 9})),
        ("slow", json!({"seconds": 2})),
    ] {
        let _ = rig.call(tool, args).await;
    }
    let _ = tokio::time::timeout(secs(1), rig.call("slow", json!({"seconds": 2}))).await;
    let heard = heard.lock().unwrap();
    let reported: Vec<_> = heard.iter().map(|a| (a.tool.as_str(), a.outcome, a.duration.as_secs())).collect();
    assert_eq!(
        reported,
        [
            ("user-created:quick@1.0.0", Ok(()), 0),
            ("user-created:fails@1.0.0", Err(ErrorCode::ExecutionFailed), 0),
            ("user-created:panics@1.0.0", Err(ErrorCode::Panicked), 0),
            ("user-created:slow@1.0.0", Err(ErrorCode::Timeout), 5),
            ("user-created:slow@1.0.0", Ok(()), 2),
            ("user-created:slow@1.0.0", Err(ErrorCode::Cancelled), 1),
        ]
    );
    let first = &heard[0];
    assert_eq!((first.caller.as_str(), first.surface.as_str(), first.revision), ("tester", "test", 1));
}

#[tokio::test]
async fn a_panicking_sink_does_not_affect_calls() {
    let rig = Rig::new(vec![Arc::new(Audit::new(|_| panic!("the disk is full")))]);
    rig.tool("quick", json!({})).tool("panics", json!({}));
    assert_eq!(rig.code("quick", json!({})).await, "ok");
    assert_eq!(rig.code("panics", json!({})).await, "panicked");
}
