//! What happens next, computed from the stored steps alone.

use haft_core::run::{AnswerStep, RunStep, StepBody, WaitingStep};

use crate::model::{ContentPart, ToolCall};

/// The reason of an answer that was cancelled.
pub(super) const CANCELLED: &str = "cancelled";
/// The reason of an answer that broke off.
pub(super) const BROKEN: &str = "error";
/// The reason of an answer with a malformed tool call.
pub(super) const MALFORMED_CALL: &str = "malformed_call";

/// The next action of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Ask the model.
    Ask,
    /// Run the calls of this answer that have no result.
    Calls(u32),
    /// This answer has no calls: check it, then end or ask for a correction.
    Check(u32),
}

/// Returns the next action.
pub(super) fn next(steps: &[RunStep]) -> Next {
    let mut is_corrected = false;
    for step in steps.iter().rev() {
        match &step.body {
            StepBody::Correction { .. } => is_corrected = true,
            StepBody::Answer(answer) => {
                if is_partial(answer) || is_corrected {
                    return Next::Ask;
                }
                let calls = call_states(steps, step.number);
                return if calls.is_empty() {
                    Next::Check(step.number)
                } else if calls.iter().any(|call| !call.has_result) {
                    Next::Calls(step.number)
                } else {
                    Next::Ask
                };
            }
            StepBody::Result(_) | StepBody::Waiting(_) | StepBody::Decided(_) | StepBody::Shortened(_) => {}
        }
    }
    Next::Ask
}

/// Returns whether an answer was cut off. It is kept for people, and the model is asked again.
pub(super) fn is_partial(answer: &AnswerStep) -> bool {
    matches!(answer.finish_reason.as_str(), CANCELLED | BROKEN)
}

/// Returns the complete answers, oldest first.
pub(super) fn answers(steps: &[RunStep]) -> impl DoubleEndedIterator<Item = (u32, &AnswerStep)> {
    steps.iter().filter_map(|step| match &step.body {
        StepBody::Answer(answer) if !is_partial(answer) => Some((step.number, answer)),
        _ => None,
    })
}

/// Returns the parts of an answer.
pub(super) fn content_of(answer: &AnswerStep) -> Vec<ContentPart> {
    // The loop wrote it; what it cannot read it treats as nothing, and asks the model again.
    serde_json::from_value(answer.content.clone()).unwrap_or_default()
}

/// One call of an answer, and what became of it.
#[derive(Debug)]
pub(super) struct CallState {
    pub(super) index: u32,
    pub(super) call: ToolCall,
    pub(super) has_result: bool,
    pub(super) waiting: Option<WaitingStep>,
}

/// Returns the calls of an answer, in order.
pub(super) fn call_states(steps: &[RunStep], number: u32) -> Vec<CallState> {
    let mut states = Vec::new();
    for step in steps.iter().skip_while(|step| step.number < number) {
        match &step.body {
            StepBody::Answer(answer) if step.number == number => {
                let calls = content_of(answer).into_iter().filter_map(|part| match part {
                    ContentPart::ToolCall(call) => Some(call),
                    _ => None,
                });
                states = (0..)
                    .zip(calls)
                    .map(|(index, call)| CallState { index, call, has_result: false, waiting: None })
                    .collect();
            }
            StepBody::Result(result) if result.answer == number => {
                if let Some(state) = states.get_mut(result.index as usize) {
                    state.has_result = true;
                }
            }
            StepBody::Waiting(waiting) if waiting.answer == number => {
                if let Some(state) = states.get_mut(waiting.index as usize) {
                    state.waiting = Some(waiting.clone());
                }
            }
            _ => {}
        }
    }
    states
}
