//! What the tasks of this process tell each other about runs.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use haft_core::run::RunLease;
use tokio::sync::{MutexGuard, Notify, watch};

use super::steps::QueuedSteps;
use crate::engine::Kind;
use crate::store::{Inner, Store};

/// How long a node waits for a notification before it looks for runs.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

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
    /// When the runs that wait for calls were last checked.
    checked: Mutex<Option<Instant>>,
}

impl RunSignals {
    /// Signals that there may be a run to claim.
    pub(super) fn signal_ready(&self) {
        self.ready.notify_one();
    }

    /// Signals that a call has ended that a run may wait for.
    pub(crate) fn signal_call_ended(&self) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = None;
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

    /// Returns whether to look at the runs that wait for calls: after each signal, and otherwise once a second, because
    /// there may be many.
    pub(super) fn is_check_due(&self) -> bool {
        let mut checked = self.checked.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = checked.is_none_or(|last| now.saturating_duration_since(last) >= POLL_INTERVAL / 2);
        if is_due {
            *checked = Some(now);
        }
        is_due
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
