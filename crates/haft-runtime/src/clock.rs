//! The clock of the machine.

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
