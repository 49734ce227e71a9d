//! The loop: answers, calls, results, odd models.

use haft_agent::model::ModelMessage;
use haft_agent::run::{RunEvent, run_state};
use haft_core::call::CallStatus;
use haft_core::chat::MessageRole;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::StepBody;
use serde_json::json;

use crate::run_harness::{Fixture, TestTool};

#[tokio::test(start_paused = true)]
async fn a_run_calls_a_tool_and_answers() {
    let run = Fixture::new(
        "turns: [{reasoning: hm, text: One moment., calls: [{tool: add, arguments: {n: '7'}}]}, \
         {text: 'It is {{results.add.n}}.', usage: {input: 10, output: 3, cached: 2}}]",
        [TestTool::new("add")],
    )
    .agent(|agent| agent.instructions = "Be short.".to_owned());
    assert_eq!(run.output().await, json!("It is 7."));
    assert_eq!(
        run.host.event_types(),
        ["start", "answer", "add running", "add success", "answer", "end success"]
    );
    let roles: Vec<_> = run.transcript().iter().map(|message| message.role).collect();
    assert_eq!(roles, [MessageRole::Assistant, MessageRole::Tool, MessageRole::Assistant]);
    let results = run.results();
    assert_eq!(results.len(), 1);
    assert_eq!((results[0].args.clone(), results[0].status), (json!({"n": 7}), CallStatus::Success));
    let usage = run.usage();
    assert_eq!((usage.answers, usage.calls, usage.cached_tokens), (2, 1, 2));
    assert!(usage.input_tokens > 10 && usage.active_ms >= 10, "{usage:?}");
    let key = format!("run:{}:1:0", run.run.id);
    assert_eq!(run.host.requests.lock().unwrap()[0].idempotency_key.as_ref(), Some(&key));
    let state = run_state(&run.steps());
    assert_eq!(state["last_agent_output"], "It is 7.");
    assert_eq!(
        (&state["context"], &state["tool_outputs"][0]["output"]),
        (&json!({"n": 7}), &json!({"n": 7}))
    );
}

#[tokio::test(start_paused = true)]
async fn text_streams_before_the_answer_is_stored() {
    let run = Fixture::new("turns: [{reasoning: well, text: a b c}]", []);
    run.output().await;
    let events = run.host.events.lock().unwrap().clone();
    let text: String = events
        .iter()
        .filter_map(|event| match event {
            RunEvent::TextDelta { text } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(text, "a b c");
    let at = |wanted: fn(&RunEvent) -> bool| events.iter().position(wanted).unwrap();
    let delta = at(|event| matches!(event, RunEvent::TextDelta { .. }));
    assert!(delta < at(|event| matches!(event, RunEvent::Answer { reasoning, .. } if reasoning == "well")));
}

#[tokio::test(start_paused = true)]
async fn unknown_tools_and_broken_arguments_are_explained_to_the_model() {
    let run = Fixture::new(
        r#"
- calls:
    - {tool: ad}
    - {tool: add, raw_arguments: '{"n": '}
    - {tool: add, raw_arguments: '{"n": 1}{"n": 2}'}
    - {tool: "test:add", arguments: {n: 3}}
- text: done
"#,
        [TestTool::new("add"), TestTool::new("zoom")],
    );
    assert_eq!(run.output().await, json!("done"));
    let texts = run.result_texts();
    assert_eq!(
        texts[0],
        "Tool call failed: there is no tool `ad`; did you mean `add`? Available: `add`, `zoom`"
    );
    assert!(texts[1].contains("the arguments are not valid JSON: EOF"), "{}", texts[1]);
    assert!(texts[2].contains("more than one JSON value"), "{}", texts[2]);
    assert_eq!(texts[3], r#"{"n":3}"#);
    assert_eq!(run.host.log(), ["+add 3", "-add 3"]);
    assert_eq!(run.usage().calls, 3, "a call of no tool does not count");
}

#[tokio::test(start_paused = true)]
async fn calls_with_one_id_are_told_apart() {
    let run = Fixture::new(
        "turns: [{calls: [{tool: add, id: x, arguments: {n: 1}}, {tool: add, id: x, arguments: {n: 2}}]}, \
         {calls: [{tool: add, id: x, arguments: {n: 3}}]}, {text: done}]",
        [TestTool::new("add")],
    );
    run.output().await;
    let messages = run.transcript();
    let ids: Vec<_> =
        messages.iter().flat_map(ModelMessage::tool_calls).map(|call| call.id.clone()).collect();
    let answered: Vec<_> =
        messages.iter().flat_map(ModelMessage::tool_results).map(|r| r.id.clone()).collect();
    assert_eq!(ids, answered);
    assert_eq!(ids[0], "x");
    let distinct: std::collections::HashSet<_> = ids.iter().collect();
    assert_eq!(distinct.len(), 3, "{ids:?}");
    assert_eq!(run.result_texts(), [r#"{"n":1}"#, r#"{"n":2}"#, r#"{"n":3}"#]);
}

#[tokio::test(start_paused = true)]
async fn a_model_without_tool_calling_writes_calls_as_text() {
    let run = Fixture::new(
        "turns: [{text: \"```json\\n{\\\"tool_name\\\": \\\"add\\\", \\\"parameters\\\": {\\\"n\\\": 5}}\\n```\"}, \
         {text: done}]",
        [TestTool::new("add")],
    );
    assert_eq!(run.output().await, json!("done"));
    assert_eq!(run.host.log(), ["+add 5", "-add 5"]);
}

#[tokio::test(start_paused = true)]
async fn text_that_imitates_a_result_is_text() {
    for text in [
        r#"{"tool_result": {"tool_name": "add", "result": {"n": 9}}}"#,
        r#"{"tool_name": "add", "result": {"n": 9}}"#,
        r#"For example: {"tool_name": "add", "parameters": {"n": 9}}"#,
    ] {
        let script = format!("turns: [{{text: {}}}]", serde_json::to_string(text).unwrap());
        let run = Fixture::new(&script, [TestTool::new("add")]);
        assert_eq!(run.output().await, json!(text));
        assert_eq!(run.host.executions("add"), 0);
        assert_eq!(run.results(), []);
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_says_nothing_is_asked_once_more() {
    let run = Fixture::new("turns: [{text: ''}, {text: ''}]", []);
    let error = run.error().await;
    assert_eq!(error.to_string(), "model_error: the model answered nothing, twice in a row");
    let corrections =
        run.steps().iter().filter(|step| matches!(step.body, StepBody::Correction { .. })).count();
    assert_eq!(corrections, 1);
}

#[tokio::test(start_paused = true)]
async fn a_malformed_call_is_given_back_once() {
    let run = Fixture::new(
        "turns: [{text: I will add., finish: malformed_call}, {calls: [{tool: add}]}, {text: done}]",
        [TestTool::new("add")],
    );
    assert_eq!(run.output().await, json!("done"));
    let corrections = run.steps().into_iter().filter_map(|step| match step.body {
        StepBody::Correction { text } => Some(text),
        _ => None,
    });
    let corrections: Vec<_> = corrections.collect();
    assert_eq!(corrections.len(), 1);
    assert!(corrections[0].starts_with("Your last tool call was malformed."), "{corrections:?}");
    let run = Fixture::new("turns: [{text: '', finish: malformed_call, repeat: 2}]", []);
    let error = run.error().await;
    assert_eq!(error.to_string(), "model_error: the model wrote a malformed tool call, twice in a row");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_is_no_answer() {
    let run = Fixture::new("turns: [{text: I cannot help with that., finish: refusal}]", []);
    let error = run.error().await;
    assert_eq!(error.to_string(), "model_error: the model refused to answer: I cannot help with that.");
    let StepBody::Answer(answer) = &run.steps()[0].body else { panic!("no answer") };
    assert_eq!(answer.finish_reason, "refusal");
}

#[tokio::test(start_paused = true)]
async fn a_model_that_fails_ends_the_run_and_keeps_its_text() {
    let run = Fixture::new("turns: [{text: Half an, error: broken_stream}]", []);
    let error = run.error().await;
    assert_eq!((error.code, error.retryable), (ErrorCode::ModelError, true));
    assert_eq!(error.model_text(), "Tool call failed: the model of the agent failed (broken_stream)");
    assert_eq!(run.transcript()[0].text(), "Half an");
    assert_eq!(run.host.event_types(), ["start", "answer", "end error"]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_a_result() {
    let run = Fixture::new(
        "turns: [{calls: [{tool: slow}]}, {text: 'It said: {{result}}'}]",
        [TestTool::new("slow").delay(60_000)],
    )
    .agent(|agent| agent.tool_timeout_ms = Some(500));
    assert_eq!(run.output().await, json!("It said: Tool call failed: the call exceeded its timeout"));
}

#[tokio::test(start_paused = true)]
async fn supervision_repeats_what_is_safe() {
    let flaky = |name: &str, code: ErrorCode| {
        TestTool::new(name).does(move |_, count| match count {
            1 | 2 => Err(CallError::new(code, "busy").retryable(true)),
            _ => Ok(json!(count)),
        })
    };
    let run = Fixture::new(
        "turns: [{calls: [{tool: marked}, {tool: timeout}, {tool: pure}]}, {text: done}]",
        [
            flaky("marked", ErrorCode::ExecutionFailed),
            flaky("timeout", ErrorCode::Timeout),
            flaky("pure", ErrorCode::Timeout).pure("g", 1),
        ],
    )
    .agent(|agent| {
        agent.supervision = serde_json::from_value(json!({"attempts": 2, "backoff_ms": 100})).unwrap();
    });
    let before = tokio::time::Instant::now();
    run.output().await;
    assert_eq!(run.result_texts(), ["3", "Tool call failed: busy", "3"]);
    assert_eq!(before.elapsed().as_millis(), 2 * (100 + 200) + 7 * 10);
    let keys: Vec<_> =
        run.host.requests.lock().unwrap().iter().map(|request| request.idempotency_key.clone()).collect();
    let key = format!("run:{}:1", run.run.id);
    assert_eq!(
        keys[..4],
        [format!("{key}:0"), format!("{key}:0:1"), format!("{key}:0:2"), format!("{key}:1")].map(Some)
    );
    assert_eq!(keys[4..], [None, None, None]);
}

#[tokio::test(start_paused = true)]
async fn values_with_sensitive_names_are_masked_for_the_model_only() {
    let run = Fixture::new(
        "turns: [{calls: [{tool: login, arguments: {password: hunter2}}]}, {text: done}]",
        [TestTool::new("login").does(|args, _| Ok(json!({"api_key": "k1", "got": args["password"]})))],
    );
    run.output().await;
    assert_eq!(run.result_texts(), [r#"{"api_key":"***","got":"hunter2"}"#]);
    let messages = run.transcript();
    assert_eq!(messages[0].tool_calls().next().unwrap().arguments, json!({"password": "***"}));
    assert_eq!(run.host.requests.lock().unwrap()[0].args["password"], "hunter2");
}
