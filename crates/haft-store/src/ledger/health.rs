//! Whether calls can be recorded: the last failure, and when the next attempt is due.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::{StorageFailure, StoreError};

use super::{LedgerBackend, database};
use crate::ledger::Calls;

/// The least time between two probes.
const PROBE_INTERVAL: Duration = Duration::from_secs(1);

/// The state of the ledger.
#[derive(Default)]
pub(crate) struct LedgerHealth {
    failing: AtomicBool,
    last: Mutex<LastFailure>,
}

#[derive(Default)]
struct LastFailure {
    action: String,
    failure: StorageFailure,
    message: String,
    probed_at: Option<Instant>,
}

impl LedgerHealth {
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Acquire)
    }

    /// Updates the state from the result of a write, and returns the result.
    pub(crate) fn observe<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Err(StoreError::Unavailable { action, failure, source }) => {
                let mut last = self.last();
                (last.action, last.failure) = (action.clone(), *failure);
                last.message = source.to_string();
                self.failing.store(true, Ordering::Release);
            }
            Ok(_) if self.is_failing() => {
                *self.last() = LastFailure::default();
                self.failing.store(false, Ordering::Release);
                tracing::info!("the ledger records calls again");
            }
            Ok(_) | Err(_) => {}
        }
        result
    }

    /// Returns whether a probe is due; if so, the caller has to make it.
    fn claim_probe(&self) -> bool {
        let mut last = self.last();
        let due = last.probed_at.is_none_or(|at| at.elapsed() >= PROBE_INTERVAL);
        if due {
            last.probed_at = Some(Instant::now());
        }
        due
    }

    fn last_error(&self) -> StoreError {
        let last = self.last();
        StoreError::Unavailable {
            action: last.action.clone(),
            failure: last.failure,
            source: last.message.clone().into(),
        }
    }

    fn last(&self) -> MutexGuard<'_, LastFailure> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    /// Attempts a write where the last one failed, at most once per interval; otherwise returns the last failure.
    pub(crate) async fn probe_if_failing(&self) -> Result<(), StoreError> {
        if !self.state.health.is_failing() {
            return Ok(());
        }
        if !self.state.health.claim_probe() {
            return Err(self.state.health.last_error());
        }
        let result = match &self.state.backend {
            LedgerBackend::Journal(_) => self.probe_journal().await,
            LedgerBackend::Database(_) => database::probe(&self.db.engine).await,
        };
        self.state.health.observe(result)
    }

    async fn probe_journal(&self) -> Result<(), StoreError> {
        if let Some(files) = &self.db.files {
            let reserve = files.reserve.clone();
            files.run("write the call journal".into(), move |_| reserve.ensure()).await?;
        }
        self.with_journal(super::journal::Journal::probe).await.flatten()
    }
}
