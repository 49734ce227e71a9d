//! The ended calls that runs of agents may wait for.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::id::CallId;
use tokio::sync::Notify;

/// How long a node waits for a notification before it polls for runs.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// If more calls than this have ended, all waiting runs are checked.
const MAX_ENDED: usize = 500;

/// The calls that ended since the last check of waiting runs.
#[derive(Default)]
pub(crate) struct EndedCalls {
    checks: Mutex<WaitChecks>,
    /// Signals that there may be a run to claim.
    ready: Notify,
}

/// The waiting runs to check next.
#[derive(Default)]
struct WaitChecks {
    /// Calls that ended since the last check.
    ended: Vec<CallId>,
    /// When all waiting runs were last checked: calls end on other nodes, too.
    all_checked: Option<Instant>,
}

/// The waiting runs to check.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum WaitCheck {
    /// Runs that wait for one of these calls.
    Calls(Vec<CallId>),
    /// All.
    All,
}

impl EndedCalls {
    fn checks(&self) -> MutexGuard<'_, WaitChecks> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds calls that have ended.
    pub(crate) fn add(&self, calls: impl IntoIterator<Item = CallId>) {
        let mut checks = self.checks();
        checks.ended.extend(calls);
        if checks.ended.len() > MAX_ENDED {
            *checks = WaitChecks::default();
        }
        drop(checks);
        self.wake();
    }

    /// Records that an unknown call has ended.
    pub(crate) fn add_unknown(&self) {
        *self.checks() = WaitChecks::default();
        self.wake();
    }

    /// Wakes the task that claims runs.
    pub(crate) fn wake(&self) {
        self.ready.notify_one();
    }

    /// Waits until there may be a run to claim, at most a second.
    pub(crate) async fn ready(&self) {
        let _ = tokio::time::timeout(POLL_INTERVAL, self.ready.notified()).await;
    }

    /// Returns the waiting runs to check: those of calls that ended here, and all of them once a second, because calls also
    /// end on other nodes.
    pub(crate) fn next_check(&self) -> WaitCheck {
        let mut checks = self.checks();
        let now = Instant::now();
        let ended = std::mem::take(&mut checks.ended);
        if checks.all_checked.is_none_or(|last| now.saturating_duration_since(last) >= POLL_INTERVAL) {
            checks.all_checked = Some(now);
            return WaitCheck::All;
        }
        WaitCheck::Calls(ended)
    }
}
