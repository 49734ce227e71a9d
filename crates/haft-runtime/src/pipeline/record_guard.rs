//! Records a call even if its future is dropped, as happens when a client disconnects.

use std::sync::Arc;

use haft_core::call::CallRecord;
use haft_core::ledger::Ledger;
use haft_core::outcome::{CallError, ErrorCode, Outcome};

use super::CallObserver;
use super::admission::Admission;

/// A call that runs: of a tool, or of an agent or a retrieval pipeline.
pub(super) trait Running {
    /// Ends the call; returns its final record.
    fn finish(self, outcome: Outcome) -> (CallRecord, Admission);
}

/// A running call. It is observed and recorded exactly once: by the pipeline, or on drop as cancelled.
pub(super) struct RecordGuard<'a, C: Running> {
    state: State<C>,
    ledger: Option<&'a Arc<dyn Ledger>>,
    observer: Option<&'a CallObserver>,
}

enum State<C> {
    Running(Box<C>),
    /// The permits are held until the record is written: until then the call counts as running.
    Finished(Arc<CallRecord>, Admission),
    Recorded,
}

impl<'a, C: Running> RecordGuard<'a, C> {
    pub(super) fn new(
        call: C,
        ledger: Option<&'a Arc<dyn Ledger>>,
        observer: Option<&'a CallObserver>,
    ) -> Self {
        Self { state: State::Running(Box::new(call)), ledger, observer }
    }

    /// Returns the call while it runs.
    pub(super) fn call(&mut self) -> Option<&mut C> {
        match &mut self.state {
            State::Running(call) => Some(&mut **call),
            State::Finished(..) | State::Recorded => None,
        }
    }

    /// Sets the outcome; returns the record, which is not durable yet.
    pub(super) fn finish(&mut self, outcome: Outcome) -> Result<Arc<CallRecord>, CallError> {
        let State::Running(call) = std::mem::replace(&mut self.state, State::Recorded) else {
            return Err(CallError::internal("the call has already ended"));
        };
        let (record, admission) = call.finish(outcome);
        let record = Arc::new(record);
        self.state = State::Finished(Arc::clone(&record), admission);
        if let Some(observer) = self.observer {
            observer(&record);
        }
        Ok(record)
    }

    /// Releases the permits once the record is written, or once writing it has failed.
    pub(super) fn disarm(&mut self) {
        self.state = State::Recorded;
    }
}

impl<C: Running> Drop for RecordGuard<'_, C> {
    fn drop(&mut self) {
        if let State::Running(_) = &self.state {
            let error = CallError::new(ErrorCode::Cancelled, "the client disconnected before the call ended");
            // The call is running, so this sets the outcome.
            let _ = self.finish(Err(error));
        }
        let State::Finished(record, admission) = std::mem::replace(&mut self.state, State::Recorded) else {
            return;
        };
        let Some(ledger) = self.ledger.cloned() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        runtime.spawn(async move {
            if let Err(error) = ledger.record(record).await {
                tracing::error!(error = %error, "cancelled call not recorded");
            }
            drop(admission);
        });
    }
}
