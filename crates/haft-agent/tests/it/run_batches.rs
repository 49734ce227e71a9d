//! The order of the calls of one answer.

use haft_core::agent::ToolExecution;
use serde_json::json;

use crate::run_harness::{Fixture, TestTool};

const CALLS: &str = "
- calls:
    - {tool: read, arguments: {n: 1}}
    - {tool: read, arguments: {n: 2}}
    - {tool: read, arguments: {n: 3}}
    - {tool: write, arguments: {n: 4}}
    - {tool: other, arguments: {n: 5}}
    - {tool: read, arguments: {n: 6}}
- text: done
";

fn tools() -> [TestTool; 3] {
    [
        TestTool::new("read").pure("disk", 2).delay(30),
        TestTool::new("write").delay(5),
        TestTool::new("other").pure("net", 1).delay(10),
    ]
}

#[tokio::test(start_paused = true)]
async fn sequential_calls_run_one_after_the_other() {
    let run = Fixture::new(CALLS, tools());
    run.output().await;
    let expected: Vec<String> = (1..=6)
        .flat_map(|n| {
            let name = ["read", "read", "read", "write", "other", "read"][n - 1];
            [format!("+{name} {n}"), format!("-{name} {n}")]
        })
        .collect();
    assert_eq!(run.host.log(), expected);
}

#[tokio::test(start_paused = true)]
async fn pure_calls_run_together_and_an_impure_call_is_a_barrier() {
    let run = Fixture::new(CALLS, tools()).agent(|agent| agent.tool_execution = ToolExecution::ParallelSafe);
    run.output().await;
    assert_eq!(
        run.host.log(),
        [
            // Two of the group `disk` at once.
            "+read 1", "+read 2", "-read 1", "-read 2", "+read 3", "-read 3", // The barrier.
            "+write 4", "-write 4", // Two groups at once; the later call ends last.
            "+other 5", "+read 6", "-other 5", "-read 6",
        ]
    );
    let expected: Vec<String> = (1..=6).map(|n| json!({ "n": n }).to_string()).collect();
    assert_eq!(run.result_texts(), expected, "results are given in the order of the calls");
}

#[tokio::test(start_paused = true)]
async fn the_agent_limits_calls_at_once() {
    let run = Fixture::new(
        "turns: [{calls: [{tool: a}, {tool: a}, {tool: a}, {tool: a}]}, {text: done}]",
        [TestTool::new("a").pure("g", 10).delay(100)],
    )
    .agent(|agent| {
        agent.tool_execution = ToolExecution::ParallelSafe;
        agent.max_parallel_tools = 2;
    });
    let before = tokio::time::Instant::now();
    run.output().await;
    assert_eq!(before.elapsed().as_millis(), 200);
}
