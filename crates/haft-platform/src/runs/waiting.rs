//! The calls that a run waits for.

use std::collections::HashSet;

use haft_core::Timestamp;
use haft_core::run::{RunStep, StepBody};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

/// A call that a run waits for.
#[derive(Debug, Clone, Serialize)]
pub struct WaitingCall {
    pub approval_id: Uuid,
    pub call_id: Uuid,
    /// `bundle:name@version`.
    pub tool: String,
    pub args: Value,
    pub expires_at: Option<Timestamp>,
}

/// Returns the calls that steps wait for: those without a result.
pub fn waiting_calls(steps: &[RunStep]) -> Vec<WaitingCall> {
    let ended: HashSet<_> = steps
        .iter()
        .filter_map(|step| match &step.body {
            StepBody::Result(result) => Some((result.answer, result.index)),
            _ => None,
        })
        .collect();
    let waiting = steps.iter().filter_map(|step| match &step.body {
        StepBody::Waiting(waiting) if !ended.contains(&(waiting.answer, waiting.index)) => {
            Some(WaitingCall {
                approval_id: waiting.approval_id.0,
                call_id: waiting.call_id.0,
                tool: waiting.tool.clone().unwrap_or_else(|| waiting.name.clone()),
                args: waiting.args.clone(),
                expires_at: waiting.expires_at,
            })
        }
        _ => None,
    });
    waiting.collect()
}
