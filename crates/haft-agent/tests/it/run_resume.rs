//! A run that was cut off continues from its steps, on any node.

use haft_agent::run::replay;
use haft_core::agent::ToolExecution;
use haft_core::run::{RunEnd, RunStatus, RunStoreError};
use serde_json::{Value, json};

use crate::run_harness::{Fixture, TestTool};

const SCRIPT: &str = "
- text: First.
  calls:
    - {tool: read, arguments: {n: 1}}
    - {tool: write, arguments: {n: 2}}
    - {tool: unknown}
    - {tool: write, arguments: {n: 3}}
    - {tool: read, arguments: {n: 4}}
- calls:
    - {tool: ask, arguments: {n: 5}}
    - {tool: write, arguments: {n: 6}}
- text: 'not JSON'
- text: '{\"done\": true}'
";

fn fixture(execution: ToolExecution) -> Fixture {
    let tools =
        [TestTool::new("read").pure("g", 2), TestTool::new("write"), TestTool::new("ask").needs_approval()];
    Fixture::new(SCRIPT, tools).agent(|agent| {
        agent.tool_execution = execution;
        agent.output_schema = Some(json!({"type": "object", "required": ["done"]}));
    })
}

/// Claims a run until it has ended, and decides about its calls.
async fn to_the_end(run: &Fixture) -> Value {
    for _ in 0..10 {
        match run.claim().await.unwrap() {
            RunEnd::Finished { status: RunStatus::Success, output: Some(output), .. } => return output,
            RunEnd::Waiting(calls) => {
                assert_eq!(calls.len(), 1);
                run.host.decide(&Ok(())).await;
            }
            other => panic!("{other:?}"),
        }
    }
    panic!("the run does not end");
}

#[tokio::test(start_paused = true)]
async fn a_run_cut_off_at_any_step_ends_the_same_and_repeats_no_effect() {
    for execution in [ToolExecution::Sequential, ToolExecution::ParallelSafe] {
        let whole = fixture(execution);
        assert_eq!(to_the_end(&whole).await, json!({"done": true}));
        let count = whole.steps().len();
        assert!(count > 12, "{count}");
        for cut in 0..=count {
            let run = fixture(execution);
            // The node is gone when it stores the step after `cut`: what it did before that has happened.
            *run.store.limit.lock().unwrap() = Some(cut);
            loop {
                match run.claim().await {
                    Err(RunStoreError::LeaseLost) => break,
                    Ok(RunEnd::Waiting(_)) => run.host.decide(&Ok(())).await,
                    other => panic!("cut after {cut}: {other:?}"),
                }
            }
            assert!(run.steps().len() <= cut);
            *run.store.limit.lock().unwrap() = None;
            assert_eq!(to_the_end(&run).await, json!({"done": true}), "cut after {cut}");
            assert_eq!(run.transcript(), whole.transcript(), "cut after {cut}");
            assert_eq!(
                (run.host.executions("write"), run.host.executions("ask")),
                (3, 1),
                "{execution:?}, cut after {cut}"
            );
            let (usage, expected) = (run.usage(), whole.usage());
            assert_eq!((usage.answers, usage.calls), (expected.answers, expected.calls));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_its_answer_ends_without_the_model() {
    let run = fixture(ToolExecution::Sequential);
    to_the_end(&run).await;
    let steps = run.steps().len();
    assert_eq!(run.output().await, json!({"done": true}));
    assert_eq!(run.steps().len(), steps);
}

#[tokio::test(start_paused = true)]
async fn watchers_that_join_late_see_open_calls() {
    let run = fixture(ToolExecution::Sequential);
    *run.store.limit.lock().unwrap() = Some(2);
    assert!(run.claim().await.is_err());
    let shown = |status| {
        let events = replay(&run.steps(), status);
        let values: Vec<Value> = events.iter().map(|event| json!(event)).collect();
        let brief = values.iter().map(|event| format!("{} {}", event["type"], event["status"]));
        brief.collect::<Vec<_>>().join(", ").replace('"', "")
    };
    assert_eq!(
        shown(RunStatus::Running),
        "answer null, tool_use success, tool_use running, tool_use running, tool_use running, tool_use running"
    );
    assert_eq!(shown(RunStatus::Cancelled), "answer null, tool_use success");
}
