//! Closes the calls of a run that ends before them, so that nobody waits for their results.

use haft_core::call::CallStatus;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::run::StepBody;

use super::calls::CallInfo;
use super::plan::PlannedCall;
use super::progress::{Next, call_states, next};
use super::session::{LoopExit, Session};

impl Session {
    /// Stores a result for each call of the last answer that has none.
    pub(super) async fn close_calls(&mut self) -> Result<(), LoopExit> {
        let Next::Calls(answer) = next(&self.steps) else { return Ok(()) };
        let tools = self.tools.clone().unwrap_or_default();
        let open = call_states(&self.steps, answer).into_iter();
        let open: Vec<_> =
            open.filter(|state| !state.has_result).map(|state| PlannedCall::new(state, &tools)).collect();
        let mut bodies = Vec::with_capacity(open.len());
        for call in open {
            let mut error = CallError::new(
                ErrorCode::Cancelled,
                "the run ended before the call did; if it had started, whether it took effect is unknown",
            );
            error.call_id = call.waiting.as_ref().map(|waiting| waiting.call_id);
            let mut about = CallInfo::new(answer, &call);
            // The steps count a call by its tool, and nobody knows whether this one was made.
            about.tool = call.waiting.and_then(|waiting| waiting.tool);
            bodies.push(StepBody::Result(about.failed(&error, CallStatus::Cancelled)));
        }
        self.append(self.start_timer(), bodies).await
    }
}
