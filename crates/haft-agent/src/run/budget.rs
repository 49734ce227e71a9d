//! What a run may still use.

use haft_core::agent::AgentBudget;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::RunUsage;

use super::progress::answers;
use super::session::Session;

impl Session {
    /// Checks the budget before a request to the model.
    pub(super) fn check_request(&self) -> Result<(), CallError> {
        let limit = self.definition().max_iterations;
        if answers(&self.steps).count() >= limit as usize {
            return Err(self.too_many_answers());
        }
        let usage = self.usage();
        check(&self.budget(&usage), &usage)
    }

    /// Checks the budget before a call, while others are in progress.
    pub(super) fn check_call(&self, in_progress: usize) -> Result<(), CallError> {
        let usage = self.usage();
        let calls = usage.calls.saturating_add(u32::try_from(in_progress).unwrap_or(u32::MAX));
        let usage = RunUsage { calls, ..usage };
        let budget = self.budget(&usage);
        if let Some(limit) = budget.calls.filter(|limit| calls >= *limit) {
            return Err(exceeded("calls", &format!("{calls} tool calls made"), &limit.to_string()));
        }
        check(&budget, &usage)
    }

    /// Returns what a call may use, with the runs of agents inside it.
    pub(super) fn remaining(&self) -> AgentBudget {
        self.run.budget.after(&self.usage())
    }

    /// Says what the run has used, and returns what it may use in all: its own budget, and what the others leave of the
    /// budgets above it.
    fn budget(&self, usage: &RunUsage) -> AgentBudget {
        self.run.budget.smaller(self.host.shared_budget(usage))
    }

    /// Returns the error of a run that exceeded its time budget.
    pub(super) fn deadline_exceeded(&self) -> CallError {
        let limit = self.run.budget.time_ms.unwrap_or_default();
        exceeded("time_ms", &format!("{} ms used", self.usage().active_ms), &format!("{limit} ms"))
    }

    /// Returns the error of a run that calls tools without an end.
    pub(super) fn too_many_answers(&self) -> CallError {
        let limit = self.definition().max_iterations;
        let message = format!(
            "stopped after {limit} answers of the model without a final one; the limit is `max_iterations` of the agent"
        );
        CallError::new(ErrorCode::BudgetExceeded, message)
    }
}

/// Checks every limit except `calls`: a request to the model is not a tool call.
fn check(budget: &AgentBudget, usage: &RunUsage) -> Result<(), CallError> {
    if let Some(limit) = budget.tokens.filter(|limit| usage.tokens() >= *limit) {
        return Err(exceeded("tokens", &format!("{} tokens used", usage.tokens()), &limit.to_string()));
    }
    if let Some(limit) = budget.time_ms.filter(|limit| usage.active_ms >= *limit) {
        return Err(exceeded("time_ms", &format!("{} ms used", usage.active_ms), &format!("{limit} ms")));
    }
    let cost = usage.cost.unwrap_or_default();
    if let Some(limit) = budget.cost.filter(|limit| cost >= *limit) {
        let currency = usage.currency.as_deref().unwrap_or_default();
        return Err(exceeded("cost", &format!("{cost:.4} {currency} used"), &format!("{limit} {currency}")));
    }
    Ok(())
}

fn exceeded(name: &str, used: &str, limit: &str) -> CallError {
    let message = format!("budget exceeded: {}; the limit `budget.{name}` is {}", used.trim(), limit.trim());
    CallError::new(ErrorCode::BudgetExceeded, message)
}
