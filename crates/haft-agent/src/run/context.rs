//! Keeps the conversation within the context window: old results are replaced by their handles, then older messages by
//! a summary.

use haft_core::run::{RunUsage, ShortenedStep, StepBody};

use super::progress::answers;
use super::session::{LoopExit, Session};
use super::tokens;
use super::transcript::{for_request, removed_results, removed_text};

/// The context window of models whose size is not configured, in tokens.
const DEFAULT_WINDOW: u64 = 128_000;
/// How full the window may be, and how full it is after old results were removed, in percent. The difference keeps the
/// start of the conversation the same for many requests, so that providers can cache it.
const FULL: u64 = 80;
const TARGET: u64 = 60;
/// How much of the window the messages take that a summary does not replace, in percent.
const KEPT: u64 = 30;
/// The length of a result that is not worth removing, in tokens.
const SMALL_RESULT: u64 = 100;

/// Why a conversation is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pressure {
    /// It may fill the window.
    Window,
    /// The provider rejected it as too long.
    Rejected,
}

impl Session {
    /// Shortens the conversation if that is necessary and possible; returns whether it is shorter now.
    pub(super) async fn shorten(&mut self, pressure: Pressure) -> Result<bool, LoopExit> {
        let (window, counted) = (self.window(), self.counted());
        let full = window * FULL / 100;
        if pressure == Pressure::Window {
            let fixed = self.fixed_size();
            let at_most = fixed + tokens::of_messages(&self.input) + self.steps_size;
            // Nothing to do; or nothing that helps, because the instructions and tools alone fill the window.
            if at_most.max(counted) <= full || fixed > full {
                return Ok(false);
            }
        }
        let size = self.estimate().max(counted);
        if pressure == Pressure::Window && size <= full {
            return Ok(false);
        }
        // A provider that rejects the conversation has a smaller window than configured.
        let window = if pressure == Pressure::Rejected { window.min(size) } else { window };
        let removed = self.remove_results(size.saturating_sub(window * TARGET / 100), pressure).await?;
        let is_enough = match pressure {
            // If nothing was removed, what the provider counted still holds.
            Pressure::Window => (removed || counted <= full) && self.estimate() <= full,
            Pressure::Rejected => removed && self.estimate() <= window * TARGET / 100,
        };
        if is_enough {
            return Ok(removed);
        }
        Ok(self.summarise(window * KEPT / 100).await? || removed)
    }

    /// Returns the size of the context window, in tokens.
    pub(super) fn window(&self) -> u64 {
        self.definition().context_window.unwrap_or(DEFAULT_WINDOW)
    }

    /// Returns the size of the next request as far as the provider counted it, if nothing was removed since.
    fn counted(&self) -> u64 {
        let mut added = 0;
        for step in self.steps.iter().rev() {
            match &step.body {
                StepBody::Result(result) => added += tokens::of_text(&result.text),
                StepBody::Answer(answer) => return added + answer.usage.tokens(),
                StepBody::Shortened(_) => return 0,
                StepBody::Waiting(_) | StepBody::Decided(_) | StepBody::Correction { .. } => {}
            }
        }
        0
    }

    /// Returns the size of what every request has.
    fn fixed_size(&self) -> u64 {
        tokens::of_text(&self.system) + self.tools_size
    }

    fn estimate(&self) -> u64 {
        self.fixed_size() + tokens::of_messages(&for_request(&self.input, &self.steps))
    }

    /// Removes old results, oldest first, until enough tokens are saved.
    async fn remove_results(&mut self, excess: u64, pressure: Pressure) -> Result<bool, LoopExit> {
        let kept_answers = match pressure {
            Pressure::Window => 2,
            Pressure::Rejected => 1,
        };
        let first_kept = answers(&self.steps).rev().nth(kept_answers - 1).map_or(0, |(number, _)| number);
        let removed = removed_results(&self.steps);
        let (mut results, mut saved) = (Vec::new(), 0);
        for step in &self.steps {
            let StepBody::Result(result) = &step.body else { continue };
            if saved >= excess || result.answer >= first_kept {
                break;
            }
            let size = tokens::of_text(&result.text) + tokens::IMAGE * result.images.len() as u64;
            if size > SMALL_RESULT && result.call_id.is_some() && !removed.contains(&step.number) {
                saved += size.saturating_sub(tokens::of_text(&removed_text(result)));
                results.push(step.number);
            }
        }
        if results.is_empty() {
            return Ok(false);
        }
        let usage = RunUsage::default();
        let step = ShortenedStep { results, summary: None, replaced_messages: 0, usage };
        self.append(self.start_timer(), vec![StepBody::Shortened(step)]).await?;
        Ok(true)
    }
}
