//! Limits: answers, budgets, the output schema, stopping.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::model::{EventStream, Model, ModelError, ModelErrorKind, ModelRequest, ToolChoice};
use haft_core::agent::AgentBudget;
use haft_core::call::CallStatus;
use haft_core::outcome::ErrorCode;
use haft_core::run::{RunEnd, RunStatus, RunUsage, StepBody};
use serde_json::json;

use crate::run_harness::{Fixture, TestTool, recorded};

const FOREVER: &str = "turns: [{calls: [{tool: add}], usage: {input: 100, output: 10}}]";

#[tokio::test(start_paused = true)]
async fn a_model_that_calls_forever_is_stopped() {
    let run = Fixture::new(FOREVER, [TestTool::new("add")]).agent(|agent| agent.max_iterations = 4);
    let error = run.error().await;
    assert_eq!(error.code, ErrorCode::BudgetExceeded);
    assert_eq!(
        error.message,
        "stopped after 4 answers of the model without a final one; the limit is `max_iterations` of the agent"
    );
    // The calls of the last answer do not run, because nobody would read their results.
    assert_eq!(run.host.executions("add"), 3);
    assert_eq!(run.results().last().unwrap().status, CallStatus::Cancelled);
    // Whoever continues it comes to the same end.
    assert_eq!(run.error().await.message, error.message);
}

#[tokio::test(start_paused = true)]
async fn budgets_end_a_run_and_name_the_limit() {
    let check = async |budget: AgentBudget, expected: &str| {
        let mut run = Fixture::new(FOREVER, [TestTool::new("add").delay(400)]);
        run.run.budget = budget;
        let error = run.error().await;
        assert_eq!((error.code, error.message.as_str()), (ErrorCode::BudgetExceeded, expected));
        run.usage()
    };
    let none = AgentBudget::default();
    let usage = check(
        AgentBudget { calls: Some(2), ..none },
        "budget exceeded: 2 tool calls made; the limit `budget.calls` is 2",
    )
    .await;
    assert_eq!(usage.calls, 2);
    check(
        AgentBudget { tokens: Some(200), ..none },
        "budget exceeded: 220 tokens used; the limit `budget.tokens` is 200",
    )
    .await;
    check(
        AgentBudget { time_ms: Some(1000), ..none },
        "budget exceeded: 1000 ms used; the limit `budget.time_ms` is 1000 ms",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_gets_what_is_left_of_the_budget() {
    let mut run = Fixture::new(
        "turns: [{calls: [{tool: add}, {tool: add}], usage: {input: 100, output: 10}}, {text: done}]",
        [TestTool::new("add").delay(400)],
    );
    run.run.budget = AgentBudget { calls: Some(5), tokens: Some(1000), time_ms: Some(5000), cost: Some(1.0) };
    run.output().await;
    let budgets: Vec<_> = run.host.requests.lock().unwrap().iter().map(|request| request.budget).collect();
    let left = |calls, time| AgentBudget {
        calls: Some(calls),
        tokens: Some(890),
        time_ms: Some(time),
        cost: Some(1.0),
    };
    assert_eq!(budgets, [left(5, 5000), left(4, 4600)]);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_match_the_schema_is_corrected_once() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    let with_schema =
        |script: &str| Fixture::new(script, []).agent(|agent| agent.output_schema = Some(schema.clone()));
    let run = with_schema("turns: [{text: '{\"n\": \"x\"}'}, {text: '{\"n\": 3}'}]");
    assert_eq!(run.output().await, json!({"n": 3}));
    let corrections: Vec<_> = run
        .steps()
        .into_iter()
        .filter_map(|step| match step.body {
            StepBody::Correction { text } => Some(text),
            _ => None,
        })
        .collect();
    assert_eq!(corrections.len(), 1);
    assert!(corrections[0].contains("`/n`: expected an integer"), "{corrections:?}");
    let run = with_schema("turns: [{text: 'no'}]");
    let error = run.error().await;
    assert_eq!(error.code, ErrorCode::InvalidOutput);
    assert!(error.message.starts_with("the answer is not valid JSON, even after a correction"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_keeps_its_text() {
    let run = Fixture::new("turns: [{text: one two three four, pace: 1s}]", []);
    let control = run.control.clone();
    let (end, ()) = tokio::join!(run.claim(), async {
        tokio::time::sleep(Duration::from_millis(2500)).await;
        control.cancel();
    });
    let RunEnd::Finished { status, error, .. } = end.unwrap() else { panic!() };
    assert_eq!((status, error.unwrap().code), (RunStatus::Cancelled, ErrorCode::Cancelled));
    let steps = run.steps();
    let StepBody::Answer(answer) = &steps[0].body else { panic!() };
    assert_eq!(answer.finish_reason, "cancelled");
    assert_eq!(run.transcript()[0].text(), "one two ");
}

#[tokio::test(start_paused = true)]
async fn cancelling_cancels_calls_in_progress() {
    let run = Fixture::new(
        "turns: [{calls: [{tool: slow, arguments: {n: 1}}, {tool: slow, arguments: {n: 2}}]}]",
        [TestTool::new("slow").delay(60_000)],
    );
    let control = run.control.clone();
    let (end, ()) = tokio::join!(run.claim(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        control.cancel();
    });
    assert!(matches!(end.unwrap(), RunEnd::Finished { status: RunStatus::Cancelled, .. }));
    assert_eq!(run.host.log(), ["+slow 1"]);
    let statuses: Vec<_> = run.results().iter().map(|result| result.status).collect();
    assert_eq!(statuses, [CallStatus::Cancelled, CallStatus::Cancelled]);
    assert!(run.result_texts()[0].contains("whether it took effect is unknown"));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_leaves_the_run_after_its_calls() {
    let mut run = Fixture::new(
        "turns: [{calls: [{tool: slow, arguments: {n: 1}}, {tool: slow, arguments: {n: 2}}]}, {text: done}]",
        [TestTool::new("slow").delay(60_000)],
    );
    let control = run.control.clone();
    let (end, ()) = tokio::join!(run.claim(), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        control.release();
    });
    assert_eq!(end.unwrap(), RunEnd::Released);
    assert_eq!(run.host.log(), ["+slow 1", "-slow 1"]);
    run.control = haft_agent::run::RunControl::new();
    assert_eq!(run.output().await, json!("done"));
    assert_eq!(run.host.log(), ["+slow 2", "-slow 2"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_a_variable_of_its_instructions_fails() {
    let run = Fixture::new("turns: [{text: done}]", [])
        .agent(|agent| agent.instructions = "Talk about {{topic}}.".to_owned());
    let error = run.error().await;
    assert_eq!(error.code, ErrorCode::Template);
    assert!(error.message.contains("`topic`"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_last_request_asks_for_an_answer_without_tools() {
    let mut run =
        Fixture::new("turns: [{calls: [{tool: add}], repeat: 2}, {text: done}]", [TestTool::new("add")])
            .agent(|agent| agent.max_iterations = 3);
    let model = recorded(&mut run);
    assert_eq!(run.output().await, json!("done"));
    let requests = model.requests.lock().unwrap().clone();
    let choices: Vec<_> = requests.iter().map(|request| request.tool_choice.clone()).collect();
    assert_eq!(choices, [ToolChoice::Auto, ToolChoice::Auto, ToolChoice::None]);
    let last = requests[2].messages.last().unwrap().text();
    assert!(last.starts_with("This is answer 3 of 3"), "{last}");
    assert_eq!(requests[2].tools.len(), 1, "providers need the tools of the calls in the conversation");
}

#[tokio::test(start_paused = true)]
async fn runs_inside_calls_count() {
    let usage = RunUsage {
        answers: 3,
        calls: 4,
        input_tokens: 500,
        cost: Some(0.25),
        currency: Some("USD".to_owned()),
        active_ms: 9999,
        ..RunUsage::default()
    };
    let tools = || [TestTool::new("agent").uses(usage.clone())];
    let script = "turns: [{calls: [{tool: agent}], usage: {input: 10}}, {text: done, usage: {input: 10}}]";
    let run = Fixture::new(script, tools());
    run.output().await;
    let used = run.usage();
    assert_eq!((used.answers, used.calls, used.input_tokens, used.cost), (5, 5, 520, Some(0.25)));
    assert!(used.active_ms < 1000, "the run above was active at the same time: {}", used.active_ms);
    let mut run = Fixture::new(script, tools());
    run.run.budget.cost = Some(0.2);
    assert_eq!(
        run.error().await.message,
        "budget exceeded: 0.2500 USD used; the limit `budget.cost` is 0.2 USD"
    );
}

#[tokio::test(start_paused = true)]
async fn a_node_that_stops_gives_up_the_request_to_the_model() {
    let mut run = Fixture::new("turns: [{text: one two three, pace: 1s}]", []);
    run.control.release();
    assert_eq!(run.claim().await.unwrap(), RunEnd::Released);
    run.control = haft_agent::run::RunControl::new();
    let control = run.control.clone();
    let (end, ()) = tokio::join!(run.claim(), async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        control.release();
    });
    assert_eq!(end.unwrap(), RunEnd::Released);
    assert_eq!(run.steps(), [], "the next node asks again");
    run.control = haft_agent::run::RunControl::new();
    assert_eq!(run.output().await, json!("one two three"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_cancelled_before_it_started_does_nothing() {
    let run = Fixture::new("turns: [{text: done}]", []);
    run.control.cancel();
    assert!(matches!(run.claim().await.unwrap(), RunEnd::Finished { status: RunStatus::Cancelled, .. }));
    assert_eq!(run.steps(), []);
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_in_one_answer_end_the_run() {
    struct TooMany;
    impl Model for TooMany {
        fn name(&self) -> &'static str {
            "eager"
        }
        fn stream(&self, _request: &ModelRequest) -> EventStream {
            let error = ModelError::new(ModelErrorKind::TooManyToolCalls, "eager", "");
            Box::pin(futures_util::stream::iter([Err(error)]))
        }
    }
    let mut run = Fixture::new("turns: [{text: done}]", []);
    run.model = Arc::new(TooMany);
    let error = run.error().await;
    assert_eq!(
        error.to_string(),
        "model_error: eager: the model made more than 128 tool calls in one answer"
    );
}
