//! Runs in API responses, with the waiting calls that the platform reads from their steps.

use haft_api::run::{RunView, WaitingCall};
use haft_core::run::{Run, RunStep};
use haft_platform::runs;

/// Shows a run with the calls that it waits for.
pub(crate) fn with_waiting(run: &Run, steps: &[RunStep]) -> RunView {
    let waiting = runs::waiting_calls(steps).into_iter().map(waiting_call).collect();
    RunView { waiting, ..RunView::from(run) }
}

fn waiting_call(call: runs::WaitingCall) -> WaitingCall {
    let runs::WaitingCall { approval_id, call_id, tool, args, expires_at } = call;
    WaitingCall { approval_id, call_id, tool, args, expires_at }
}
