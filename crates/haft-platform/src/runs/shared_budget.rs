//! The budget that a run and all runs below it share.
//!
//! Every run says before each request and each call what it has used. What runs below use counts at once, not only when
//! they have ended, so that runs side by side cannot each use all that is left. A run that was cut off keeps counting.
//! Runs on other nodes, which continue what a node has left, keep to what was left when they started.

use std::collections::HashMap;

use haft_core::agent::AgentBudget;
use haft_core::id::RunId;
use haft_core::run::RunUsage;

/// The budget of one run on this node.
#[derive(Debug, Default)]
pub(super) struct SharedBudget {
    /// What the run may use in all.
    limit: AgentBudget,
    /// What was left of it when the last call started.
    at_call: AgentBudget,
    /// What the run has used as it said last, with the runs below that it knew of.
    used: RunUsage,
    /// What runs below have used besides, however deep they are.
    below: HashMap<RunId, RunUsage>,
    /// What runs directly below used that have ended and that no call of the run has counted yet.
    ended: RunUsage,
    /// Those runs.
    ended_runs: Vec<RunId>,
    /// The runs that a call has counted, so that the run knows of them when it speaks next.
    counted: Vec<RunId>,
}

impl SharedBudget {
    /// Creates the budget of a run that has used this much.
    pub(super) fn new(limit: AgentBudget, used: RunUsage) -> Self {
        Self { limit, at_call: limit.after(&used), used, ..Self::default() }
    }

    /// Notes what is left for a call that starts.
    pub(super) fn start_call(&mut self, left: AgentBudget) {
        self.at_call = left;
    }

    /// Returns what a run may use that starts now.
    pub(super) fn left(&self) -> AgentBudget {
        self.at_call.smaller(self.remaining_after_siblings(None))
    }

    /// Notes what the run itself has used; returns the runs below that this includes.
    pub(super) fn report(&mut self, used: &RunUsage) -> Vec<RunId> {
        self.used = used.clone();
        let counted = std::mem::take(&mut self.counted);
        self.forget(&counted);
        counted
    }

    /// Notes what a run below has used, which includes other runs; returns what it may use in all.
    pub(super) fn report_below(&mut self, run: RunId, used: &RunUsage, included: &[RunId]) -> AgentBudget {
        self.forget(included);
        self.below.insert(run, used.clone());
        // Runs side by side share the time of the run above: each has its own deadline.
        AgentBudget { time_ms: None, ..self.remaining_after_siblings(Some(run)) }
    }

    /// Notes that a run directly below has ended.
    pub(super) fn end_below(&mut self, run: RunId, used: &RunUsage) {
        self.ended.add(used);
        self.ended_runs.push(run);
    }

    /// Takes what runs directly below have used since the last time, for the call that counts it.
    pub(super) fn take_ended(&mut self) -> RunUsage {
        self.counted.append(&mut self.ended_runs);
        std::mem::take(&mut self.ended)
    }

    fn forget(&mut self, runs: &[RunId]) {
        for run in runs {
            self.below.remove(run);
        }
    }

    fn remaining_after_siblings(&self, run: Option<RunId>) -> AgentBudget {
        let mut used = self.used.clone();
        for (_, below) in self.below.iter().filter(|(id, _)| Some(**id) != run) {
            // The time of the run above goes on while a run below it is active.
            used.add(&RunUsage { active_ms: 0, ..below.clone() });
        }
        self.limit.after(&used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn id(number: u128) -> RunId {
        RunId(Uuid::from_u128(number))
    }

    fn used(calls: u32) -> RunUsage {
        RunUsage { calls, input_tokens: u64::from(calls) * 10, ..RunUsage::default() }
    }

    fn budget(calls: u32) -> AgentBudget {
        AgentBudget { calls: Some(calls), tokens: Some(u64::from(calls) * 10), ..AgentBudget::default() }
    }

    #[test]
    fn runs_side_by_side_share_what_is_left() {
        let mut shared = SharedBudget::new(budget(10), used(2));
        assert_eq!(shared.left(), budget(8));
        assert_eq!(shared.report_below(id(1), &used(0), &[]), budget(8));
        assert_eq!(shared.report_below(id(1), &used(3), &[]), budget(8));
        assert_eq!(shared.report_below(id(2), &used(0), &[]), budget(5));
        assert_eq!(shared.report_below(id(2), &used(4), &[]), budget(5));
        assert_eq!(shared.report_below(id(1), &used(3), &[]), budget(4));
        assert_eq!(shared.left(), budget(1));
    }

    #[test]
    fn an_ended_run_is_counted_once() {
        let mut shared = SharedBudget::new(budget(10), used(0));
        shared.report_below(id(1), &used(3), &[]);
        shared.report_below(id(2), &used(1), &[]);
        shared.end_below(id(1), &used(3));
        assert_eq!(shared.left(), budget(6), "no call has counted it");
        assert_eq!(shared.take_ended(), used(3));
        assert_eq!(shared.take_ended(), RunUsage::default());
        assert_eq!(shared.left(), budget(6), "the run has not spoken since");
        assert_eq!(shared.report(&used(4)), [id(1)]);
        assert_eq!(shared.report_below(id(2), &used(1), &[]), budget(6));
        assert_eq!(shared.left().calls, Some(5));
    }

    #[test]
    fn a_run_further_below_counts_at_once_and_once() {
        let mut root = SharedBudget::new(budget(10), used(0));
        root.report_below(id(1), &used(1), &[]);
        // A run below that one.
        assert_eq!(root.report_below(id(2), &used(5), &[]), budget(9));
        assert_eq!(root.left(), budget(4));
        // It has ended, and the run between has counted it.
        assert_eq!(root.report_below(id(1), &used(7), &[id(2)]), budget(10));
        assert_eq!(root.left(), budget(3));
    }

    #[test]
    fn what_is_left_of_the_time_is_that_of_the_run() {
        let limit = AgentBudget { time_ms: Some(100), ..AgentBudget::default() };
        let mut shared = SharedBudget::new(limit, RunUsage::default());
        let active = RunUsage { active_ms: 60, ..RunUsage::default() };
        assert_eq!(shared.report_below(id(1), &active, &[]), AgentBudget::default());
        assert_eq!(shared.left(), limit);
    }
}
