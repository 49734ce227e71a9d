//! Calls that run in the background: who watches them, and who may stop them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::name::TenantId;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many events a slow watcher may lag behind before it misses some.
const BUFFER: usize = 256;

/// A call that runs in the background.
#[derive(Clone)]
pub struct Running {
    /// For whom it runs.
    pub tenant: TenantId,
    /// Stops it.
    pub cancel: CancellationToken,
    events: broadcast::Sender<CallEvent>,
}

impl Running {
    /// Listens to its events from now on; the channel closes when the call is over.
    pub fn subscribe(&self) -> broadcast::Receiver<CallEvent> {
        self.events.subscribe()
    }
}

impl EventSink for Running {
    fn emit(&self, event: CallEvent) {
        // Nobody listening is not an error.
        let _ = self.events.send(event);
    }
}

/// All calls that run in the background.
#[derive(Default)]
pub struct Background {
    calls: Mutex<HashMap<CallId, Arc<Running>>>,
}

impl Background {
    /// Enters a call; it is listed until the guard is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: CallId,
        tenant: TenantId,
        cancel: CancellationToken,
    ) -> (Arc<Running>, Entered) {
        let running = Arc::new(Running { tenant, cancel, events: broadcast::Sender::new(BUFFER) });
        self.lock().insert(id, Arc::clone(&running));
        (running, Entered { background: Arc::clone(self), id })
    }

    /// Finds a running call.
    pub fn get(&self, tenant: &TenantId, id: CallId) -> Option<Arc<Running>> {
        self.lock().get(&id).filter(|running| running.tenant == *tenant).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, Arc<Running>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a call listed.
pub(crate) struct Entered {
    background: Arc<Background>,
    id: CallId,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.background.lock().remove(&self.id);
    }
}
