//! What the tasks of this process tell each other about runs.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use haft_core::run::RunLease;
use tokio::sync::{MutexGuard, Notify, watch};

use super::steps::QueuedSteps;
use crate::engine::Kind;
use crate::store::{Inner, Store};

/// How long a node waits for a notification before it looks for runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// When more calls than this have ended, all runs that wait are looked at.
const MAX_ENDED: usize = 500;

/// The signals of runs, and the steps that wait for the database.
#[derive(Default)]
pub(crate) struct RunSignals {
    /// Signals that there may be a run to claim.
    ready: Notify,
    /// Changes whenever a run was left or cancelled.
    changes: watch::Sender<u64>,
    /// Held during a write, so that writers take turns before SQLite makes them sleep.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Steps that wait for the next write.
    pub(super) queue: Mutex<Vec<QueuedSteps>>,
    /// Leases of this node whose last write failed: their tasks have stopped.
    failed: Mutex<Vec<RunLease>>,
    /// Which runs that wait for calls are looked at next.
    waits: Mutex<WaitChecks>,
}

/// Which runs that wait for calls are looked at next.
#[derive(Default)]
struct WaitChecks {
    /// Calls that ended since the last look.
    ended: Vec<CallId>,
    /// When all of them were last looked at: calls end on other nodes, too.
    all_checked: Option<Instant>,
}

/// Which runs that wait for calls to look at.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum WaitCheck {
    /// Those that wait for one of these calls.
    Calls(Vec<CallId>),
    /// All.
    All,
}

impl RunSignals {
    /// Signals that there may be a run to claim.
    pub(super) fn signal_ready(&self) {
        self.ready.notify_one();
    }

    fn waits(&self) -> std::sync::MutexGuard<'_, WaitChecks> {
        self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Signals that calls have ended that runs may wait for.
    pub(crate) fn signal_calls_ended(&self, calls: impl IntoIterator<Item = CallId>) {
        let mut waits = self.waits();
        waits.ended.extend(calls);
        if waits.ended.len() > MAX_ENDED {
            *waits = WaitChecks::default();
        }
        drop(waits);
        self.ready.notify_one();
    }

    /// Signals that some call has ended that a run may wait for.
    pub(crate) fn signal_check(&self) {
        *self.waits() = WaitChecks::default();
        self.ready.notify_one();
    }

    /// Signals that a run was left or cancelled, here or on another node.
    pub(crate) fn signal_change(&self) {
        self.changes.send_modify(|number| *number = number.wrapping_add(1));
        self.ready.notify_one();
    }

    /// Notes a lease whose write failed, so that the run is freed when the database accepts writes again.
    pub(super) fn note_failed(&self, lease: RunLease) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
    }

    /// Takes the leases whose write failed.
    pub(super) fn take_failed(&self) -> Vec<RunLease> {
        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns which runs that wait for calls to look at: those of calls that ended here, and all of them once a second,
    /// because calls also end on other nodes.
    pub(super) fn next_check(&self) -> WaitCheck {
        let mut waits = self.waits();
        let now = Instant::now();
        let ended = std::mem::take(&mut waits.ended);
        if waits.all_checked.is_none_or(|last| now.saturating_duration_since(last) >= POLL_INTERVAL) {
            waits.all_checked = Some(now);
            return WaitCheck::All;
        }
        WaitCheck::Calls(ended)
    }
}

impl Store {
    /// Waits until there may be a run to claim, at most a second.
    pub async fn runs_ready(&self) {
        let _ = tokio::time::timeout(POLL_INTERVAL, self.inner.runs.ready.notified()).await;
    }

    /// Returns a number that changes whenever a run ends, waits, is released or cancelled. Changes by other nodes are
    /// detected only with PostgreSQL, while the tasks of [`Store::watch`] run.
    pub fn run_changes(&self) -> watch::Receiver<u64> {
        self.inner.runs.changes.subscribe()
    }
}

impl Inner {
    /// Waits for the turn to write a run. PostgreSQL needs no turns.
    pub(super) async fn run_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.engine.kind {
            Kind::Sqlite => Some(self.runs.writing.lock().await),
            Kind::Postgres => None,
        }
    }
}

/// A failure that several writers share.
#[derive(Debug, Clone)]
pub(super) struct SharedError {
    pub(super) failure: haft_core::catalog::StorageFailure,
    pub(super) message: std::sync::Arc<str>,
}

impl SharedError {
    pub(super) fn new(error: &sqlx::Error) -> Self {
        tracing::error!(%error, "cannot store the steps of runs");
        let message = "the database rejected the write; see the log".into();
        Self { failure: crate::engine::storage_failure(error), message }
    }

    pub(super) fn into_error(self, action: &str) -> StoreError {
        let Self { failure, message } = self;
        StoreError::Unavailable { action: action.to_owned(), failure, source: message.as_ref().into() }
    }
}
