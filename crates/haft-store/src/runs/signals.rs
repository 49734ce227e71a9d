//! Signals about runs between the tasks of this process.

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::catalog::StoreError;
use haft_core::run::RunLease;
use tokio::sync::{MutexGuard, watch};

use super::steps::QueuedSteps;
use crate::database::ChangeSignal;
use crate::engine::Kind;
use crate::ledger::ended::EndedCalls;
use crate::runs::Runs;

/// The signals of runs, and the steps that wait for the database.
#[derive(Default)]
pub(crate) struct RunSignals {
    /// Signals that there may be a run to claim.
    pub(super) ended: Arc<EndedCalls>,
    /// Changes whenever a run was left or cancelled.
    changes: ChangeSignal,
    /// Held during a write, so that writers take turns before SQLite makes them sleep.
    pub(super) writing: tokio::sync::Mutex<()>,
    /// Steps that wait for the next write.
    pub(super) queue: Mutex<Vec<QueuedSteps>>,
    /// Leases of this node whose last write failed: their tasks have stopped.
    failed: Mutex<Vec<RunLease>>,
}

impl RunSignals {
    pub(super) fn new(ended: &Arc<EndedCalls>) -> Self {
        Self { ended: Arc::clone(ended), ..Self::default() }
    }

    /// Signals that there may be a run to claim.
    pub(super) fn signal_ready(&self) {
        self.ended.wake();
    }

    /// Signals that a run was released or cancelled, here or on another node.
    pub(crate) fn signal_change(&self) {
        self.changes.send();
        self.ended.wake();
    }

    /// Notes a lease whose write failed, so that the run is freed when the database accepts writes again.
    pub(super) fn record_failure(&self, lease: RunLease) {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(lease);
    }

    /// Takes the leases whose write failed.
    pub(super) fn take_failures(&self) -> Vec<RunLease> {
        std::mem::take(&mut *self.failed.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Runs {
    /// Waits until there may be a run to claim, at most a second.
    pub async fn ready(&self) {
        self.signals.ended.ready().await;
    }

    /// Signals that a run was released or cancelled, here or on another node.
    pub(crate) fn signal_change(&self) {
        self.signals.signal_change();
    }

    /// Returns a number that changes whenever a run ends, waits, is released or cancelled. Changes by other nodes are
    /// detected only with PostgreSQL, while the tasks of [`crate::Store::watch`] run.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.signals.changes.subscribe()
    }
}

impl Runs {
    /// Waits for the turn to write a run. PostgreSQL needs no turns.
    pub(super) async fn write_permit(&self) -> Option<MutexGuard<'_, ()>> {
        match self.db.engine.kind {
            Kind::Sqlite => Some(self.signals.writing.lock().await),
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
