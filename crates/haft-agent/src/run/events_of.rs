//! The events that follow from stored steps, for watchers that join late or on another node.

use haft_core::call::CallStatus;
use haft_core::outcome::CallError;
use haft_core::run::{ResultStep, RunStatus, RunStep, StepBody, StepError, WaitingStep};

use super::event::RunEvent;
use super::progress::{answers, call_states, content_of};
use crate::model::ContentPart;

/// Returns the events that follow from a step.
pub fn events_of(step: &RunStep) -> Vec<RunEvent> {
    match &step.body {
        StepBody::Answer(answer) => {
            let (mut text, mut reasoning) = (Vec::new(), Vec::new());
            for part in content_of(answer) {
                match part {
                    ContentPart::Text { text: part } => text.push(part),
                    ContentPart::Reasoning { text: part, .. } if !part.is_empty() => reasoning.push(part),
                    _ => {}
                }
            }
            vec![RunEvent::Answer {
                step: step.number,
                model: answer.model.clone(),
                text: text.join("\n"),
                reasoning: reasoning.join("\n"),
                usage: answer.usage.clone(),
            }]
        }
        StepBody::Result(result) => vec![ended(result, step.duration_ms)],
        StepBody::Waiting(waiting) => vec![waits(waiting), approval_request(waiting)],
        StepBody::Decided(decided) => vec![RunEvent::ApprovalDecided {
            approval_id: decided.approval_id,
            call_id: decided.call_id,
            approved: decided.approved,
        }],
        StepBody::Shortened(shortened) => vec![RunEvent::Shortened {
            results: shortened.results.len(),
            summarised: shortened.summary.is_some(),
        }],
        StepBody::Correction { text } => vec![RunEvent::Correction { text: text.clone() }],
    }
}

/// Returns the events of a run so far. Calls that have not ended are shown as running, unless the run has ended.
pub fn replay(steps: &[RunStep], status: RunStatus) -> Vec<RunEvent> {
    let mut events: Vec<RunEvent> = steps.iter().flat_map(events_of).collect();
    if let Some((answer, _)) = answers(steps).next_back().filter(|_| !status.is_final()) {
        let open = call_states(steps, answer).into_iter();
        let open = open.filter(|state| !state.has_result && state.waiting.is_none());
        events.extend(open.map(|state| RunEvent::ToolUse {
            answer,
            index: state.index,
            id: state.call.id,
            name: state.call.name,
            tool: None,
            args: state.call.arguments,
            status: CallStatus::Running,
            call_id: None,
            output: None,
            error: None,
            duration_ms: None,
        }));
    }
    events
}

fn ended(result: &ResultStep, duration_ms: f64) -> RunEvent {
    RunEvent::ToolUse {
        answer: result.answer,
        index: result.index,
        id: result.id.clone(),
        name: result.name.clone(),
        tool: result.tool.clone(),
        args: result.args.clone(),
        status: result.status,
        call_id: result.call_id,
        output: result.value.clone(),
        error: result.error.clone(),
        duration_ms: Some(duration_ms),
    }
}

fn waits(waiting: &WaitingStep) -> RunEvent {
    RunEvent::ToolUse {
        answer: waiting.answer,
        index: waiting.index,
        id: waiting.id.clone(),
        name: waiting.name.clone(),
        tool: waiting.tool.clone(),
        args: waiting.args.clone(),
        status: CallStatus::AwaitingApproval,
        call_id: Some(waiting.call_id),
        output: None,
        error: None,
        duration_ms: None,
    }
}

fn approval_request(waiting: &WaitingStep) -> RunEvent {
    RunEvent::ApprovalRequest {
        approval_id: waiting.approval_id,
        call_id: waiting.call_id,
        id: waiting.id.clone(),
        tool: waiting.tool.clone().unwrap_or_else(|| waiting.name.clone()),
        args: waiting.args.clone(),
        expires_at: waiting.expires_at,
    }
}

/// Returns what a step stores of an error.
pub(super) fn step_error(error: &CallError) -> StepError {
    StepError { code: error.code.as_str().to_owned(), message: error.message.clone() }
}
