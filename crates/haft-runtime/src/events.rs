//! Calls that run in the background: who watches them, and who may stop them.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::name::TenantId;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many events a slow watcher may lag behind before it misses some, and how many a late one is told.
const BUFFER: usize = 256;

/// A call that runs in the background.
#[derive(Clone)]
pub struct BackgroundCall {
    /// For whom it runs.
    pub tenant: TenantId,
    /// Stops it.
    pub cancel: CancellationToken,
    events: broadcast::Sender<CallEvent>,
    /// The latest events, for who comes after them: nobody can watch a call before it has begun.
    past: Arc<Mutex<VecDeque<CallEvent>>>,
}

impl BackgroundCall {
    /// Returns the latest events, and listens to all further ones; the channel closes when the call is over.
    pub fn subscribe(&self) -> (Vec<CallEvent>, broadcast::Receiver<CallEvent>) {
        // Under the lock, so that no event is in both or in neither.
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        (past.iter().cloned().collect(), self.events.subscribe())
    }
}

impl EventSink for BackgroundCall {
    fn emit(&self, event: CallEvent) {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if past.len() == BUFFER {
            past.pop_front();
        }
        past.push_back(event.clone());
        // Nobody listening is not an error.
        let _ = self.events.send(event);
    }
}

/// All calls that run in the background.
#[derive(Default)]
pub struct BackgroundCalls {
    calls: Mutex<HashMap<CallId, Arc<BackgroundCall>>>,
}

impl BackgroundCalls {
    /// Enters a call; it is listed until the guard is dropped.
    pub(crate) fn enter(
        self: &Arc<Self>,
        id: CallId,
        tenant: TenantId,
        cancel: CancellationToken,
    ) -> (Arc<BackgroundCall>, Entered) {
        let running = Arc::new(BackgroundCall {
            tenant,
            cancel,
            events: broadcast::Sender::new(BUFFER),
            past: Arc::default(),
        });
        self.lock().insert(id, Arc::clone(&running));
        (running, Entered { background: Arc::clone(self), id })
    }

    /// Finds a running call.
    pub fn get(&self, tenant: &TenantId, id: CallId) -> Option<Arc<BackgroundCall>> {
        self.lock().get(&id).filter(|running| running.tenant == *tenant).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, Arc<BackgroundCall>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a call listed.
pub(crate) struct Entered {
    background: Arc<BackgroundCalls>,
    id: CallId,
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.background.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn who_comes_late_is_told_the_latest_events() {
        let background = Arc::new(BackgroundCalls::default());
        let cancel = CancellationToken::new();
        let (running, _entered) =
            background.enter(CallId(Uuid::now_v7()), TenantId::default_tenant(), cancel);
        for number in 0..BUFFER + 2 {
            running.emit(CallEvent::Output(number.to_string()));
        }
        let (past, mut coming) = running.subscribe();
        assert_eq!(past.len(), BUFFER);
        assert_eq!(past.first(), Some(&CallEvent::Output("2".to_owned())));
        running.emit(CallEvent::Output("next".to_owned()));
        assert_eq!(coming.try_recv(), Ok(CallEvent::Output("next".to_owned())));
        assert!(coming.try_recv().is_err(), "nothing is told twice");
    }
}
