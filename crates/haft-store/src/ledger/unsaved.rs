//! The ends of calls that could not be stored: kept in memory until the storage is back.
//!
//! Without them, a queued call that ends while the database is away would seem to run for ever.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::call::CallRecord;
use haft_core::catalog::StoreError;

use super::record::CallRow;
use crate::ledger::Calls;

/// Beyond this number the ends of further calls are lost; their calls are interrupted when the node stops.
const MAX_UNSAVED: usize = 10_000;

/// Records that wait for the storage.
#[derive(Default)]
pub(crate) struct UnsavedCalls(Mutex<Vec<Arc<CallRecord>>>);

impl UnsavedCalls {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<CallRecord>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the end of a call if writing it failed because the storage is unavailable.
    pub(crate) fn keep(&self, call: &Arc<CallRecord>, result: &Result<(), StoreError>) {
        if result.as_ref().is_err_and(StoreError::is_temporary) && call.status.is_final() {
            let mut unsaved = self.lock();
            if unsaved.len() < MAX_UNSAVED {
                unsaved.push(Arc::clone(call));
            }
        }
    }
}

impl Calls {
    /// Stores the kept ends of calls, as far as the storage is available.
    pub(crate) async fn store_unsaved(&self) {
        let calls = std::mem::take(&mut *self.state.unsaved.lock());
        let mut failed = Vec::new();
        for call in calls {
            let result = match CallRow::new(&call) {
                Ok(row) if failed.is_empty() => self.append_under_claim(row).await,
                Ok(_) => Err(StoreError::unavailable("record a call", "an earlier call was not stored")),
                Err(error) => Err(error),
            };
            if result.as_ref().is_err_and(StoreError::is_temporary) {
                failed.push(call);
            }
        }
        if !failed.is_empty() {
            self.state.unsaved.lock().extend(failed);
        }
    }
}
