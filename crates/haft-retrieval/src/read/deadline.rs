//! When reading a document must have ended.

use std::time::{Duration, Instant};

use super::ReadError;

/// The end of the time for a document.
#[derive(Debug, Clone, Copy)]
pub(super) struct Deadline {
    started: Instant,
    limit: Duration,
}

impl Deadline {
    /// Starts the time.
    pub(super) fn start(limit: Duration) -> Self {
        Self { started: Instant::now(), limit }
    }

    /// Fails once the time is over.
    pub(super) fn check(self) -> Result<(), ReadError> {
        let limit = self.limit;
        if self.started.elapsed() < limit { Ok(()) } else { Err(ReadError::TooSlow { limit }) }
    }
}
