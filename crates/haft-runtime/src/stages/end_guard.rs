//! Reports how a call ended, even if its future is dropped.

use std::time::Instant;

use haft_core::outcome::{ErrorCode, Outcome};

use crate::clock;

/// Success, or the code of the error.
pub(super) type EndStatus = Result<(), ErrorCode>;

/// Calls `report` with the status of a call, exactly once.
pub(super) struct EndGuard<F: FnOnce(EndStatus)> {
    report: Option<F>,
    deadline: Instant,
}

impl<F: FnOnce(EndStatus)> EndGuard<F> {
    /// Guards a call with this deadline.
    pub(super) fn new(deadline: Instant, report: F) -> Self {
        Self { report: Some(report), deadline }
    }

    /// Drops the guard without a report.
    pub(super) fn cancel(mut self) {
        self.report = None;
    }

    /// Reports the outcome.
    pub(super) fn finish(mut self, outcome: &Outcome) {
        self.report(outcome.as_ref().map(drop).map_err(|error| error.code));
    }

    fn report(&mut self, status: EndStatus) {
        if let Some(report) = self.report.take() {
            report(status);
        }
    }
}

impl<F: FnOnce(EndStatus)> Drop for EndGuard<F> {
    fn drop(&mut self) {
        let code = if std::thread::panicking() {
            ErrorCode::Panicked
        } else if clock::now() >= self.deadline {
            ErrorCode::Timeout
        } else {
            ErrorCode::Cancelled
        };
        self.report(Err(code));
    }
}
