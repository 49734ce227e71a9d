//! Makes sure of the record when the future of a call is dropped, as happens when a client goes away.

use std::sync::Arc;

use haft_core::call::CallRecord;
use haft_core::ledger::Ledger;
use haft_core::outcome::{CallError, ErrorCode, Outcome};

use super::call::Call;
use crate::limits::Admission;

/// Where a call is between its start and its record.
pub(super) enum State {
    Running(Call),
    /// The place is kept: a call without a record still counts as running.
    Over(Arc<CallRecord>, Admission),
    Recorded,
}

/// A call without its last record.
pub(super) struct Unfinished<'a> {
    pub(super) state: State,
    pub(super) ledger: Option<&'a Arc<dyn Ledger>>,
}

impl Unfinished<'_> {
    /// Enters the outcome; returns the record, which is not durable yet.
    pub(super) fn finish(&mut self, outcome: Outcome) -> Result<Arc<CallRecord>, CallError> {
        let State::Running(call) = std::mem::replace(&mut self.state, State::Recorded) else {
            return Err(CallError::internal("a call ended twice"));
        };
        let (record, admission) = call.finished(outcome);
        let record = Arc::new(record);
        self.state = State::Over(Arc::clone(&record), admission);
        Ok(record)
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let State::Running(_) = &self.state {
            let gone = CallError::new(ErrorCode::Cancelled, "the caller went away before the call was over");
            // It is running, so this enters the outcome.
            let _ = self.finish(Err(gone));
        }
        let State::Over(record, admission) = std::mem::replace(&mut self.state, State::Recorded) else {
            return;
        };
        let Some(ledger) = self.ledger.cloned() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = ledger.record(record).await {
                tracing::error!(error = %error, "a cancelled call was not recorded");
            }
            drop(admission);
        });
    }
}
