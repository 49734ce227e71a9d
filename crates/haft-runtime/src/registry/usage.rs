//! Usage counters of tools.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use haft_core::Timestamp;
use haft_core::tool::Usage;

/// Counts the calls of one tool without a lock.
#[derive(Default)]
pub(super) struct UsageCounter {
    calls: AtomicU64,
    last_called: AtomicI64,
    unsaved: AtomicU64,
    /// Whether the counter is in the list of unsaved ones.
    listed: AtomicBool,
}

impl UsageCounter {
    pub(super) fn new(usage: Usage) -> Self {
        let last_called = usage.last_called_at.map_or(0, Timestamp::as_microsecond);
        Self { calls: usage.call_count.into(), last_called: last_called.into(), ..Self::default() }
    }

    /// Counts a call; returns whether the counter must be added to the list of unsaved ones.
    pub(super) fn add(&self, now: Timestamp) -> bool {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.last_called.fetch_max(now.as_microsecond(), Ordering::Relaxed);
        self.unsaved.fetch_add(1, Ordering::AcqRel);
        !self.listed.swap(true, Ordering::AcqRel)
    }

    /// Takes the calls since the last time, with the time of the last call.
    pub(super) fn take_unsaved(&self) -> Option<(u64, Timestamp)> {
        // Unlisted first: a call that is counted in between lists the counter again.
        self.listed.store(false, Ordering::Release);
        let calls = self.unsaved.swap(0, Ordering::AcqRel);
        let last = self.usage().last_called_at?;
        (calls > 0).then_some((calls, last))
    }

    pub(super) fn usage(&self) -> Usage {
        let last = self.last_called.load(Ordering::Relaxed);
        Usage {
            call_count: self.calls.load(Ordering::Relaxed),
            last_called_at: if last == 0 { None } else { Timestamp::from_microsecond(last).ok() },
        }
    }
}
