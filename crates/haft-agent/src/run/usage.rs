//! What a run has used, counted from its steps.

use std::collections::HashSet;

use haft_core::run::{RunStep, RunUsage, StepBody};

use crate::model::ModelResponse;

/// Adds up what the steps of a run used.
#[derive(Debug, Default)]
pub(super) struct Meter {
    usage: RunUsage,
    /// The calls that were counted: a call that waited has two steps.
    counted: HashSet<(u32, u32)>,
}

impl Meter {
    pub(super) fn of(steps: &[RunStep]) -> Self {
        let mut meter = Self::default();
        for step in steps {
            meter.add(&step.body);
        }
        meter
    }

    pub(super) fn add(&mut self, body: &StepBody) {
        match body {
            StepBody::Answer(answer) => self.usage.add(&answer.usage),
            StepBody::Shortened(shortened) => self.usage.add(&shortened.usage),
            StepBody::Waiting(waiting) => self.count(waiting.answer, waiting.index),
            StepBody::Result(result) => {
                if result.tool.is_some() {
                    self.count(result.answer, result.index);
                }
                // The time of the run above goes on while a run inside it is active.
                self.usage.add(&RunUsage { active_ms: 0, ..result.usage.clone() });
            }
            StepBody::Decided(_) | StepBody::Correction { .. } => {}
        }
    }

    fn count(&mut self, answer: u32, index: u32) {
        if self.counted.insert((answer, index)) {
            self.usage.calls = self.usage.calls.saturating_add(1);
        }
    }

    pub(super) fn usage(&self) -> &RunUsage {
        &self.usage
    }
}

/// Returns what an answer used.
pub(super) fn usage_of(response: &ModelResponse) -> RunUsage {
    RunUsage {
        answers: 1,
        calls: 0,
        input_tokens: response.usage.input,
        output_tokens: response.usage.output,
        cached_tokens: response.usage.cached,
        cost: response.cost.as_ref().map(|cost| cost.amount),
        currency: response.cost.as_ref().map(|cost| cost.currency.clone()),
        active_ms: 0,
    }
}
