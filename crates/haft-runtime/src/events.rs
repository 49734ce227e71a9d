//! Calls that run in the background, their events and their cancellation.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::name::TenantId;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many events a slow subscriber may lag behind, and how many past events a new one receives.
const EVENT_BUFFER: usize = 256;

/// A call that runs in the background.
#[derive(Clone)]
pub struct BackgroundCall {
    /// The tenant for which it runs.
    pub tenant: TenantId,
    /// Cancels it.
    pub cancel: CancellationToken,
    events: broadcast::Sender<CallEvent>,
    /// The latest events for later subscribers: nobody can subscribe before the call has started.
    past: Arc<Mutex<VecDeque<CallEvent>>>,
}

impl BackgroundCall {
    /// Returns the latest events and a receiver of all further ones, which closes when the call ends.
    pub fn subscribe(&self) -> (Vec<CallEvent>, broadcast::Receiver<CallEvent>) {
        // Under the lock, so that every event is in exactly one of them.
        let past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        (past.iter().cloned().collect(), self.events.subscribe())
    }
}

impl EventSink for BackgroundCall {
    fn emit(&self, event: CallEvent) {
        let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
        if past.len() == EVENT_BUFFER {
            past.pop_front();
        }
        past.push_back(event.clone());
        // No subscriber is not an error.
        let _ = self.events.send(event);
    }
}

/// All calls that run in the background.
#[derive(Default)]
pub struct BackgroundCalls {
    calls: Mutex<HashMap<CallId, Arc<BackgroundCall>>>,
}

impl BackgroundCalls {
    /// Adds a call; it is listed until the guard is dropped.
    pub(crate) fn insert(
        self: &Arc<Self>,
        id: CallId,
        tenant: TenantId,
        cancel: CancellationToken,
    ) -> (Arc<BackgroundCall>, ListedGuard) {
        let running = Arc::new(BackgroundCall {
            tenant,
            cancel,
            events: broadcast::Sender::new(EVENT_BUFFER),
            past: Arc::default(),
        });
        self.lock().insert(id, Arc::clone(&running));
        (running, ListedGuard { background: Arc::clone(self), id })
    }

    /// Returns a running call.
    pub fn get(&self, tenant: &TenantId, id: CallId) -> Option<Arc<BackgroundCall>> {
        self.lock().get(&id).filter(|running| running.tenant == *tenant).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<CallId, Arc<BackgroundCall>>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a call listed.
pub(crate) struct ListedGuard {
    background: Arc<BackgroundCalls>,
    id: CallId,
}

impl Drop for ListedGuard {
    fn drop(&mut self) {
        self.background.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_late_subscriber_receives_the_latest_events() {
        let background = Arc::new(BackgroundCalls::default());
        let cancel = CancellationToken::new();
        let (running, _listed) =
            background.insert(CallId(Uuid::now_v7()), TenantId::default_tenant(), cancel);
        for number in 0..EVENT_BUFFER + 2 {
            running.emit(CallEvent::Output(number.to_string()));
        }
        let (past, mut coming) = running.subscribe();
        assert_eq!(past.len(), EVENT_BUFFER);
        assert_eq!(past.first(), Some(&CallEvent::Output("2".to_owned())));
        running.emit(CallEvent::Output("next".to_owned()));
        assert_eq!(coming.try_recv(), Ok(CallEvent::Output("next".to_owned())));
        assert!(coming.try_recv().is_err(), "no event is received twice");
    }
}
