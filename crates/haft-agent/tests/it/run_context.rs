//! A conversation that fills the context window is shortened.

use std::sync::Arc;

use haft_agent::model::{EventStream, Model, ModelMessage, ModelRequest, Script, Scripted};
use haft_agent::run::{conversation, transcript};
use haft_core::chat::MessageRole;
use haft_core::run::{ShortenedStep, StepBody};
use serde_json::json;

use crate::run_harness::{Fixture, TestTool, recorded};

fn shortened(run: &Fixture) -> Vec<ShortenedStep> {
    let steps = run.steps().into_iter().filter_map(|step| match step.body {
        StepBody::Shortened(shortened) => Some(shortened),
        _ => None,
    });
    steps.collect()
}

/// A tool that returns about 1000 tokens.
fn big() -> TestTool {
    TestTool::new("big").does(|_, count| Ok(json!(format!("{count}").repeat(4000))))
}

#[tokio::test(start_paused = true)]
async fn old_results_are_replaced_by_their_handles() {
    let mut run = Fixture::new(
        "turns: [{calls: [{tool: big}], repeat: 5, usage: {input: 1}}, {text: done, usage: {input: 1}}]",
        [big()],
    )
    .agent(|agent| agent.context_window = Some(5000));
    let model = recorded(&mut run);
    assert_eq!(run.output().await, json!("done"));
    let steps = shortened(&run);
    assert!(!steps.is_empty() && steps.iter().all(|step| step.summary.is_none()), "{steps:?}");
    let texts = run.result_texts();
    assert!(texts[0].starts_with("[This result was removed to save space. Pass `$result:"), "{}", texts[0]);
    // The results of the last two answers stay.
    assert_eq!((texts[3].len(), texts[4].len()), (4000, 4000));
    for request in model.requests.lock().unwrap().iter() {
        let size: usize = request
            .messages
            .iter()
            .flat_map(ModelMessage::tool_results)
            .map(|result| result.text.len())
            .sum();
        assert!(size <= 4 * 5000, "{size}");
    }
    assert!(run.host.event_types().contains(&"shortened".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_long_conversation_is_summarised() {
    let mut run = Fixture::new(
        "turns: [{when: {user: '^\\[user\\] question 0'}, text: A summary.}, {text: done, usage: {input: 1}}]",
        [],
    )
    .agent(|agent| agent.context_window = Some(1000));
    let question = |n: usize| format!("question {n} {}", "word ".repeat(100));
    let mut input: Vec<_> = (0..8)
        .flat_map(|n| [ModelMessage::user(question(n)), ModelMessage::assistant(format!("answer {n}"))])
        .collect();
    input.push(ModelMessage::user("the last question"));
    run.run.input = serde_json::to_value(&input).unwrap();
    let model = recorded(&mut run);
    assert_eq!(run.output().await, json!("done"));
    let steps = shortened(&run);
    assert_eq!(steps.len(), 1);
    assert_eq!(steps[0].summary.as_deref(), Some("A summary."));
    assert_eq!(run.usage().answers, 2);
    let last = model.requests.lock().unwrap().last().unwrap().messages.clone();
    assert_eq!(last[0].role, MessageRole::System);
    assert_eq!(last[0].text(), "A summary replaces the conversation before this point:\n\nA summary.");
    assert_eq!(last.len(), 1 + input.len() - steps[0].replaced_messages as usize);
    assert_eq!(last.last().unwrap().text(), "the last question");
    // The chat goes on from the summary.
    let whole = conversation(input, &run.steps());
    assert_eq!(whole[..last.len()], last[..]);
    assert_eq!(whole.last().unwrap().text(), "done");
    assert_eq!(transcript(&run.steps()).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_rejected_conversation_is_shortened_once() {
    /// Rejects conversations with more than two results of full length.
    struct Small(Scripted);
    impl Model for Small {
        fn name(&self) -> &'static str {
            "small"
        }
        fn stream(&self, request: &ModelRequest) -> EventStream {
            let results = request.messages.iter().flat_map(ModelMessage::tool_results);
            if results.filter(|result| result.text.len() >= 4000).count() > 2 {
                let script = Script::parse("s", "turns: [{error: context_too_long}]").unwrap();
                return Scripted::new("small", Arc::new(script)).stream(request);
            }
            self.0.stream(request)
        }
    }
    let script =
        "turns: [{calls: [{tool: big}], repeat: 3, usage: {input: 1}}, {text: done, usage: {input: 1}}]";
    let mut run = Fixture::new(script, [big()]);
    run.model = Arc::new(Small(Scripted::new("small", Arc::new(Script::parse("s", script).unwrap()))));
    assert_eq!(run.output().await, json!("done"));
    assert!(!shortened(&run).is_empty());
    // Without anything to remove, the error of the model is the error of the run.
    let run = Fixture::new("turns: [{error: context_too_long}]", []);
    assert!(run.error().await.message.contains("too long for the context window"));
}
