//! The system clock, and the monotonic clock of deadlines.

use std::time::{Duration, Instant};

use haft_core::{Clock, Timestamp};

/// Reads the clock of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one Clock that asks the machine")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Returns the time for deadlines and rates: that of the tokio runtime, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns the time since an instant.
pub(crate) fn since(instant: Instant) -> Duration {
    now().saturating_duration_since(instant)
}
