//! Calls that wait for people.

use haft_core::agent::ToolExecution;
use haft_core::call::CallStatus;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::RunEnd;
use serde_json::json;

use crate::run_harness::{Fixture, TestTool};

const SCRIPT: &str = "
- calls:
    - {tool: read, arguments: {n: 1}}
    - {tool: pay, arguments: {n: 2}}
    - {tool: read, arguments: {n: 3}}
- text: 'done: {{results.pay}}'
";

fn fixture() -> Fixture {
    Fixture::new(SCRIPT, [TestTool::new("read").pure("g", 4), TestTool::new("pay").needs_approval()])
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_and_those_after_it_wait_for_it() {
    let run = fixture();
    let RunEnd::Waiting(calls) = run.claim().await.unwrap() else { panic!() };
    assert_eq!(run.host.log(), ["+read 1", "-read 1"]);
    assert_eq!(
        run.host.event_types(),
        [
            "start",
            "answer",
            "read running",
            "read success",
            "pay running",
            "pay awaiting_approval",
            "approval_request",
            "end awaiting_approval"
        ]
    );
    // Nobody has decided: the run waits again, and nothing is stored.
    let steps = run.steps().len();
    assert_eq!(run.claim().await.unwrap(), RunEnd::Waiting(calls));
    assert_eq!(run.steps().len(), steps);
    run.host.event_types();
    run.host.decide(&Ok(())).await;
    assert_eq!(run.output().await, json!(r#"done: {"n":2}"#));
    assert_eq!(run.host.log(), ["+pay 2", "-pay 2", "+read 3", "-read 3"]);
    assert_eq!(
        run.host.event_types(),
        ["start", "approval_decided", "pay success", "read running", "read success", "answer", "end success"]
    );
    assert_eq!(run.usage().calls, 3);
}

#[tokio::test(start_paused = true)]
async fn the_model_reads_that_a_person_denied_the_call() {
    let run = fixture();
    assert!(matches!(run.claim().await.unwrap(), RunEnd::Waiting(_)));
    let denied = CallError::new(ErrorCode::ApprovalDenied, "`boss` denied the call: too much")
        .for_model("a person denied the call: too much");
    run.host.decide(&Err(denied)).await;
    assert_eq!(run.output().await, json!("done: Tool call failed: a person denied the call: too much"));
    assert_eq!(run.results()[1].status, CallStatus::Denied);
    assert_eq!(run.host.executions("pay"), 0);
}

#[tokio::test(start_paused = true)]
async fn calls_of_the_same_batch_run_while_one_waits() {
    let run = Fixture::new(
        "turns: [{calls: [{tool: guarded}, {tool: read, arguments: {n: 1}}, {tool: write}]}, {text: done}]",
        [
            TestTool::new("guarded").pure("g", 4).needs_approval(),
            TestTool::new("read").pure("g", 4),
            TestTool::new("write"),
        ],
    )
    .agent(|agent| agent.tool_execution = ToolExecution::ParallelSafe);
    assert!(matches!(run.claim().await.unwrap(), RunEnd::Waiting(_)));
    assert_eq!(run.host.log(), ["+read 1", "-read 1"], "`write` waits for its turn");
    run.host.decide(&Ok(())).await;
    assert_eq!(run.output().await, json!("done"));
}
