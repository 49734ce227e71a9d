//! `Timeout` and `Retry`.

use std::sync::Arc;
use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::executor::{CallContext, Executor, Prepared};
use haft_core::implementation::Kind;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::Problem;
use haft_core::spec::ToolSpec;
use haft_runtime::executors::Executors;
use haft_runtime::stages::{Retry, Stage, Timeout};
use serde_json::{Map, Value, json};

use super::rig::{Rig, secs};

fn rig(stages: Vec<Arc<dyn Stage>>, tool: &str, execution: Value) -> Rig {
    let rig = Rig::new(stages);
    rig.tool(tool, execution);
    rig
}

fn timeout(seconds: u64) -> Arc<dyn Stage> {
    Arc::new(Timeout::new(secs(seconds)).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_timeout_never_extends_that_of_the_definition() {
    for (stages, own_ms, expected) in [
        (vec![timeout(2)], 60_000, "timeout: `slow` timed out after 2s"),
        (vec![timeout(90)], 3000, "timeout: `slow` timed out after 3s"),
        (vec![timeout(2), timeout(1)], 60_000, "timeout: `slow` timed out after 1s"),
        (vec![timeout(1), timeout(2)], 60_000, "timeout: `slow` timed out after 1s"),
    ] {
        let rig = rig(stages, "slow", json!({"timeout_ms": own_ms}));
        let error = rig.call("slow", json!({"seconds": 10})).await.unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(rig.call("slow", json!({"seconds": 0})).await.unwrap(), 2);
    }
    assert_eq!(
        Timeout::new(Duration::ZERO).unwrap_err().to_string(),
        "`Timeout`: a timeout of 0 rejects every call; use a duration such as `Duration::from_secs(30)`"
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_retryable_only_if_a_second_call_does_no_harm() {
    for (execution, expected) in [
        (json!({}), false),
        (json!({"is_pure": true}), true),
        (json!({"retry": {"attempts": 1}}), true),
        (json!({"retry": {"attempts": 0}}), false),
    ] {
        for stages in [vec![], vec![timeout(1)]] {
            let mut execution = execution.clone();
            execution["timeout_ms"] = json!(2000);
            let rig = rig(stages, "slow", execution.clone());
            let error = rig.call("slow", json!({"seconds": 10})).await.unwrap_err();
            assert_eq!((error.code, error.retryable), (ErrorCode::Timeout, expected), "{execution}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_its_own_timeout_inside_a_retry() {
    let retry = Arc::new(Retry::new(2).backoff(secs(1)).only_if(|_, error| error.code == ErrorCode::Timeout));
    let rig = rig(vec![retry, timeout(5)], "slow", json!({"timeout_ms": 60_000}));
    let start = tokio::time::Instant::now();
    assert_eq!(rig.code("slow", json!({"seconds": 10})).await, "timeout");
    // Three times five seconds, and waits of half to all of one and two.
    let took = start.elapsed();
    assert!((Duration::from_millis(16_500)..=secs(18)).contains(&took), "{took:?}");
    assert_eq!(rig.runs(), 3);
}

#[tokio::test(start_paused = true)]
async fn only_safe_calls_are_retried() {
    let none = json!({"attempts": 0});
    for (tool, execution, stage, expected) in [
        // A network error may have had an effect already.
        ("flaky", json!({}), Retry::new(5), ("network", 1)),
        ("flaky", json!({"retry": none}), Retry::new(5), ("ok", 3)),
        ("flaky", json!({"retry": none}), Retry::new(1), ("network", 2)),
        ("flaky", json!({"is_pure": true}), Retry::new(5), ("ok", 3)),
        ("flaky", json!({}), Retry::new(5).only_if(|call, _| call.tool() == "flaky"), ("ok", 3)),
        ("fails", json!({"is_pure": true}), Retry::new(5), ("execution_failed", 1)),
        ("fails", json!({}), Retry::new(5).only_if(|_, _| true), ("execution_failed", 6)),
        ("fails", json!({}), Retry::new(0).only_if(|_, _| true), ("execution_failed", 1)),
        ("panics", json!({"retry": none}), Retry::new(5), ("panicked", 1)),
    ] {
        let rig = rig(vec![Arc::new(stage)], tool, execution.clone());
        let code = rig.code(tool, json!({})).await;
        assert_eq!((code, rig.runs()), expected, "{tool} {execution}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_retry_waits_beyond_the_deadline() {
    let retry = Arc::new(Retry::new(9).backoff(secs(20)).only_if(|_, _| true));
    let rig = rig(vec![retry], "fails", json!({"timeout_ms": 15_000}));
    let error = rig.call("fails", json!({})).await.unwrap_err();
    assert_eq!((error.code, error.retryable), (ErrorCode::ExecutionFailed, false), "the error as it was");
    assert!(rig.runs() <= 2);
}

/// A tool that takes a while to install.
struct Installed;

impl Executor for Installed {
    fn kind(&self) -> Kind {
        Kind::Function
    }

    fn prepare(&self, _: &Arc<ToolSpec>, _: Option<&str>) -> Result<Arc<dyn Prepared>, Vec<Problem>> {
        Ok(Arc::new(Installed))
    }
}

impl Prepared for Installed {
    fn run<'a>(&'a self, call: &'a CallContext, _: &'a Map<String, Value>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(60)).await;
            call.report_preparation(Duration::from_millis(50));
            let error = CallError::new(ErrorCode::Network, "unreachable");
            if call.attempt == 0 { Err(error) } else { Ok(json!(call.attempt)) }
        })
    }
}

#[tokio::test]
async fn the_time_of_an_installation_is_a_step_of_its_own() {
    let retry = Arc::new(Retry::new(1).backoff(Duration::from_millis(1)));
    let rig = Rig::with_executors(vec![retry], Executors::default().with(Arc::new(Installed)));
    rig.tool("tool", json!({"is_pure": true}));
    let record = rig.record("tool").await;
    assert_eq!(record.value, Some(json!(1)));
    let steps = record.steps;
    assert!((steps.prepare_ms - 100.0).abs() < 0.01, "{steps:?}");
    assert!(steps.execute_ms >= 10.0 && steps.execute_ms < record.duration_ms.unwrap() - 90.0, "{steps:?}");
}
