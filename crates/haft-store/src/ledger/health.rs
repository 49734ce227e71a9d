//! Whether records can be stored: what failed last, and when it was tried again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;

use super::Ledgers;
use crate::store::Inner;

/// How long after an attempt the next one waits.
const PAUSE: Duration = Duration::from_secs(1);

/// What is known of the ledger.
#[derive(Default)]
pub(crate) struct Health {
    failing: AtomicBool,
    trouble: Mutex<Trouble>,
}

#[derive(Default)]
struct Trouble {
    doing: String,
    why: String,
    tried: Option<Instant>,
}

impl Health {
    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Acquire)
    }

    /// Notes what came of a write; returns it.
    pub(crate) fn note<T>(&self, result: Result<T, StoreError>) -> Result<T, StoreError> {
        match &result {
            Err(StoreError::Unavailable { operation, source }) => {
                let mut trouble = self.trouble();
                (trouble.doing, trouble.why) = (operation.clone(), source.to_string());
                self.failing.store(true, Ordering::Release);
            }
            Ok(_) if self.is_failing() => {
                *self.trouble() = Trouble::default();
                self.failing.store(false, Ordering::Release);
                tracing::info!("calls can be recorded again");
            }
            Ok(_) | Err(_) => {}
        }
        result
    }

    /// Tells whether it is time to try again, and takes the turn.
    fn is_due(&self) -> bool {
        let mut trouble = self.trouble();
        let due = trouble.tried.is_none_or(|tried| tried.elapsed() >= PAUSE);
        if due {
            trouble.tried = Some(Instant::now());
        }
        due
    }

    fn last(&self) -> StoreError {
        let trouble = self.trouble();
        StoreError::unavailable(trouble.doing.clone(), trouble.why.clone())
    }

    fn trouble(&self) -> MutexGuard<'_, Trouble> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Tries a write where the last one failed, once in a while; in between, the last failure is told again.
    pub(crate) async fn probe(self: Arc<Self>) -> Result<(), StoreError> {
        if !self.health.is_failing() {
            return Ok(());
        }
        if !self.health.is_due() {
            return Err(self.health.last());
        }
        let result = match &self.ledger {
            Ledgers::Journal(_) => self.journal(super::journal::Journal::probe).await.flatten(),
            Ledgers::Group(group) => group.probe(&self.engine).await,
        };
        self.health.note(result)
    }
}
