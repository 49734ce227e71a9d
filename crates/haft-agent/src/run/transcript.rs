//! The conversation of a run, as the model reads it.

use std::collections::{HashMap, HashSet};

use haft_core::chat::MessageRole;
use haft_core::large_result::ResultHandle;
use haft_core::run::{AnswerStep, ResultStep, RunStep, ShortenedStep, StepBody};

use super::mask::mask_sensitive;
use super::progress::{content_of, is_partial};
use crate::model::{ContentPart, ModelMessage, ToolCall, ToolResult};

/// Returns the messages that a run adds after its input. The text of an answer that was cut off is kept if it is the last.
pub fn transcript(steps: &[RunStep]) -> Vec<ModelMessage> {
    let last = steps.iter().rev().find(|step| matches!(step.body, StepBody::Answer(_)));
    let last = last.map(|step| step.number);
    messages(steps, last)
}

/// Returns a conversation with a run at its end: its input and what the run adds, shortened as the run shortened it.
///
/// The conversation of a chat is this function applied to one run after the other.
pub fn conversation(input: Vec<ModelMessage>, steps: &[RunStep]) -> Vec<ModelMessage> {
    let mut all = input;
    all.extend(transcript(steps));
    with_summary(all, steps)
}

/// Returns the conversation for the next request.
pub(super) fn for_request(input: &[ModelMessage], steps: &[RunStep]) -> Vec<ModelMessage> {
    with_summary(unsummarised(input, steps), steps)
}

/// Returns the conversation for the next request without its summary, whose positions the steps refer to.
pub(super) fn unsummarised(input: &[ModelMessage], steps: &[RunStep]) -> Vec<ModelMessage> {
    let mut all = input.to_vec();
    all.extend(messages(steps, None));
    all
}

/// Returns the newest summary, and how many messages it replaces.
pub(super) fn summary(steps: &[RunStep]) -> Option<(&str, usize)> {
    steps.iter().rev().find_map(|step| match &step.body {
        StepBody::Shortened(ShortenedStep { summary: Some(summary), replaced_messages, .. }) => {
            Some((summary.as_str(), *replaced_messages as usize))
        }
        _ => None,
    })
}

fn with_summary(all: Vec<ModelMessage>, steps: &[RunStep]) -> Vec<ModelMessage> {
    let Some((summary, replaced)) = summary(steps) else { return all };
    let note = format!("A summary replaces the conversation before this point:\n\n{summary}");
    let mut kept = vec![ModelMessage::new(MessageRole::System, note)];
    kept.extend(all.into_iter().skip(replaced));
    kept
}

/// Returns the results that were replaced by their handles, by the numbers of their steps.
pub(super) fn removed_results(steps: &[RunStep]) -> HashSet<u32> {
    let shortened = steps.iter().filter_map(|step| match &step.body {
        StepBody::Shortened(shortened) => Some(&shortened.results),
        _ => None,
    });
    shortened.flatten().copied().collect()
}

/// Writes the messages of steps. Of the answers that were cut off, only `partial` is written.
fn messages(steps: &[RunStep], partial: Option<u32>) -> Vec<ModelMessage> {
    let removed = removed_results(steps);
    let mut results = HashMap::new();
    for step in steps {
        if let StepBody::Result(result) = &step.body {
            results.insert((result.answer, result.index), (step.number, result));
        }
    }
    let mut messages = Vec::new();
    for step in steps {
        match &step.body {
            StepBody::Answer(answer) if is_partial(answer) && partial != Some(step.number) => {}
            StepBody::Answer(answer) => {
                let result = |index: u32, call: &ToolCall| match results.get(&(step.number, index)) {
                    Some((number, result)) => tool_result(result, removed.contains(number)),
                    None => missing_result(call),
                };
                write_answer(answer, result, &mut messages);
            }
            StepBody::Correction { text } => {
                messages.push(ModelMessage::new(MessageRole::System, text.clone()));
            }
            StepBody::Result(_) | StepBody::Waiting(_) | StepBody::Decided(_) | StepBody::Shortened(_) => {}
        }
    }
    messages
}

fn write_answer(
    answer: &AnswerStep,
    result: impl Fn(u32, &ToolCall) -> ToolResult,
    messages: &mut Vec<ModelMessage>,
) {
    let mut content = content_of(answer);
    let says_nothing = content.iter().all(|part| match part {
        ContentPart::Text { text } => text.trim().is_empty(),
        ContentPart::Reasoning { .. } => true,
        ContentPart::Image { .. } | ContentPart::ToolCall(_) | ContentPart::ToolResult(_) => false,
    });
    // Providers reject messages without content.
    if says_nothing {
        return;
    }
    content.retain(|part| !matches!(part, ContentPart::Text { text } if text.trim().is_empty()));
    let mut results = Vec::new();
    for part in &mut content {
        if let ContentPart::ToolCall(call) = part {
            results.push(result(u32::try_from(results.len()).unwrap_or(u32::MAX), call));
            mask_sensitive(&mut call.arguments);
        }
    }
    messages.push(ModelMessage { role: MessageRole::Assistant, content });
    if !results.is_empty() {
        messages.push(ModelMessage::results(results));
    }
}

fn tool_result(result: &ResultStep, is_removed: bool) -> ToolResult {
    let (text, images) = if is_removed {
        (removed_text(result), Vec::new())
    } else {
        let images = result.images.iter().filter_map(|image| serde_json::from_value(image.clone()).ok());
        (result.text.clone(), images.collect())
    };
    let is_error = result.error.is_some();
    ToolResult { id: result.id.clone(), name: result.name.clone(), text, images, is_error }
}

/// Returns what the model reads in place of a result that was removed.
pub(super) fn removed_text(result: &ResultStep) -> String {
    match result.call_id {
        Some(call) => {
            let handle = ResultHandle::whole(call);
            format!(
                "[This result was removed to save space. Pass `{handle}` as an argument to hand it to a tool.]"
            )
        }
        None => "[This result was removed to save space.]".to_owned(),
    }
}

/// Returns the result of a call that has none, because providers reject calls without results.
fn missing_result(call: &ToolCall) -> ToolResult {
    ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: "This call has no result: the run ended before it did.".to_owned(),
        images: Vec::new(),
        is_error: true,
    }
}
