//! The clock of the machine.

use std::time::{Duration, Instant};

use haft_core::{Clock, Timestamp};

/// Tells the time of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one Clock that asks the machine")]
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Returns the moment by which deadlines and rates are counted: the runtime's, which tests can stop.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns how long ago a moment was.
pub(crate) fn since(moment: Instant) -> Duration {
    now().saturating_duration_since(moment)
}
