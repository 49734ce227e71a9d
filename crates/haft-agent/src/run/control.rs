//! Stops a run: cancellation, shutdown of the node, or an exceeded time budget.

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Stops a run from outside. Clones control the same run.
#[derive(Debug, Clone, Default)]
pub struct RunControl {
    cancel: CancellationToken,
    release: CancellationToken,
}

impl RunControl {
    /// Creates the control of a run that goes on.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends the run as cancelled: the request to the model and the calls in progress are cancelled, and the text so far
    /// is stored.
    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Leaves the run to another node: the request to the model is given up, calls in progress end first, and nothing
    /// new starts.
    pub fn release(&self) {
        self.release.cancel();
    }

    /// Returns whether the run was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Returns whether the run was left to another node.
    pub fn is_released(&self) -> bool {
        self.release.is_cancelled()
    }
}

/// Why a run stops before its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Cancelled,
    Released,
    /// The time of the budget is used up.
    DeadlineExceeded,
}

/// Watches for reasons to stop.
#[derive(Debug, Clone)]
pub(super) struct StopWatch {
    pub(super) control: RunControl,
    pub(super) deadline: Option<Instant>,
}

impl StopWatch {
    /// Returns the reason to stop, if there is one.
    pub(super) fn reason(&self) -> Option<Stop> {
        if self.control.is_cancelled() {
            Some(Stop::Cancelled)
        } else if self.control.is_released() {
            Some(Stop::Released)
        } else {
            self.deadline.filter(|deadline| Instant::now() >= *deadline).map(|_| Stop::DeadlineExceeded)
        }
    }

    /// Resolves when the run has to stop.
    pub(super) async fn stopped(&self) -> Stop {
        tokio::select! {
            biased;
            stop = self.interrupted() => stop,
            () = self.control.release.cancelled() => Stop::Released,
        }
    }

    /// Resolves when even calls in progress have to stop. They may end when the node only leaves the run.
    pub(super) async fn interrupted(&self) -> Stop {
        tokio::select! {
            biased;
            () = self.control.cancel.cancelled() => Stop::Cancelled,
            () = self.deadline_exceeded() => Stop::DeadlineExceeded,
        }
    }

    async fn deadline_exceeded(&self) {
        match self.deadline {
            Some(deadline) => tokio::time::sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }
}
