//! How a call ended, for stages that tell of it in any case: also where its future is dropped.

use std::time::Instant;

use haft_core::outcome::{ErrorCode, Outcome};

use crate::clock;

/// How a call ended: well, or with this code.
pub(super) type Ending = Result<(), ErrorCode>;

/// Tells `end` how the call ended, exactly once.
pub(super) struct Ended<F: FnOnce(Ending)> {
    end: Option<F>,
    deadline: Instant,
}

impl<F: FnOnce(Ending)> Ended<F> {
    /// Starts to watch a call that has until `deadline`.
    pub(super) fn new(deadline: Instant, end: F) -> Self {
        Self { end: Some(end), deadline }
    }

    /// Says that nothing is left to tell.
    pub(super) fn cancel(mut self) {
        self.end = None;
    }

    /// Tells of the outcome.
    pub(super) fn with(mut self, outcome: &Outcome) {
        self.tell(outcome.as_ref().map(drop).map_err(|error| error.code));
    }

    fn tell(&mut self, ending: Ending) {
        if let Some(end) = self.end.take() {
            end(ending);
        }
    }
}

impl<F: FnOnce(Ending)> Drop for Ended<F> {
    fn drop(&mut self) {
        let code = if std::thread::panicking() {
            ErrorCode::Panicked
        } else if clock::now() >= self.deadline {
            ErrorCode::Timeout
        } else {
            ErrorCode::Cancelled
        };
        self.tell(Err(code));
    }
}
