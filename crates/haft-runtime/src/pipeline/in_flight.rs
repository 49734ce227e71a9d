//! The calls of this process that others may wait for: those with an idempotency key, and those from the queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::call::CallRecord;
use haft_core::id::CallId;
use tokio::sync::watch;

type Result = Option<Arc<CallRecord>>;

/// The calls that run, with a channel for the record of each.
#[derive(Default)]
pub(super) struct InFlight {
    calls: Mutex<HashMap<CallId, watch::Sender<Result>>>,
}

impl InFlight {
    /// Adds a call; it can be waited for until the guard is dropped.
    pub(super) fn insert(self: &Arc<Self>, id: CallId) -> InFlightGuard {
        self.lock().insert(id, watch::Sender::new(None));
        InFlightGuard { calls: Arc::clone(self), id }
    }

    /// Waits for the record of a call; `None` if it does not run here or failed to be recorded.
    pub(super) async fn wait(&self, id: CallId) -> Result {
        let mut receiver = self.lock().get(&id).map(watch::Sender::subscribe)?;
        receiver.wait_for(Option::is_some).await.ok().and_then(|record| record.clone())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, watch::Sender<Result>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a call listed.
pub(super) struct InFlightGuard {
    calls: Arc<InFlight>,
    id: CallId,
}

impl InFlightGuard {
    /// Hands the record to everyone who waits.
    pub(super) fn finish(self, record: &Arc<CallRecord>) {
        if let Some(sender) = self.calls.lock().get(&self.id) {
            sender.send_replace(Some(Arc::clone(record)));
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.calls.lock().remove(&self.id);
    }
}
