//! Calls from the queue that run on this node, their events and their cancellation.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::ledger::NumberedEvent;
use haft_core::name::TenantId;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// How many events a slow subscriber may lag behind, and how many past events a new one receives.
const EVENT_BUFFER: usize = 256;

/// A call from the queue that runs on this node.
#[derive(Clone)]
pub struct BackgroundCall {
    /// The tenant for which it runs.
    pub tenant: TenantId,
    /// Cancels it.
    pub cancel: CancellationToken,
    events: broadcast::Sender<NumberedEvent>,
    past: Arc<Mutex<PastEvents>>,
}

/// The latest events for later subscribers: nobody can subscribe before the call has started.
#[derive(Default)]
struct PastEvents {
    latest: VecDeque<NumberedEvent>,
    /// The number of the newest event.
    last: u64,
    /// The number of the newest event that is stored for readers on other nodes.
    saved: u64,
}

impl BackgroundCall {
    /// Returns the latest events after a number, and a receiver of all further ones, which closes when the call ends.
    pub fn subscribe(&self, after: u64) -> (Vec<NumberedEvent>, broadcast::Receiver<NumberedEvent>) {
        // Under the lock, so that every event is in exactly one of them.
        let past = self.past();
        let latest = past.latest.iter().filter(|event| event.number > after).cloned().collect();
        (latest, self.events.subscribe())
    }

    /// Returns the latest events that are not stored yet, and marks them as stored.
    pub(crate) fn take_unsaved(&self) -> Vec<NumberedEvent> {
        let mut past = self.past();
        let (saved, last) = (past.saved, past.last);
        past.saved = last;
        past.latest.iter().filter(|event| event.number > saved).cloned().collect()
    }

    fn past(&self) -> MutexGuard<'_, PastEvents> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EventSink for BackgroundCall {
    fn emit(&self, event: CallEvent) {
        let mut past = self.past();
        past.last += 1;
        let event = NumberedEvent { number: past.last, event };
        if past.latest.len() == EVENT_BUFFER {
            past.latest.pop_front();
        }
        past.latest.push_back(event.clone());
        // No subscriber is not an error.
        let _ = self.events.send(event);
    }
}

/// All calls from the queue that run on this node.
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

    /// Returns all running calls.
    pub(crate) fn all(&self) -> Vec<(CallId, Arc<BackgroundCall>)> {
        self.lock().iter().map(|(id, call)| (*id, Arc::clone(call))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<CallId, Arc<BackgroundCall>>> {
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
        let (past, mut coming) = running.subscribe(0);
        assert_eq!(past.len(), EVENT_BUFFER);
        let numbered =
            |number, text: &str| NumberedEvent { number, event: CallEvent::Output(text.to_owned()) };
        assert_eq!(past.first(), Some(&numbered(3, "2")));
        assert_eq!(running.subscribe(257).0, [numbered(258, "257")]);
        assert_eq!(running.take_unsaved().len(), EVENT_BUFFER);
        running.emit(CallEvent::Output("next".to_owned()));
        assert_eq!(running.take_unsaved(), [numbered(259, "next")]);
        assert_eq!(coming.try_recv(), Ok(numbered(259, "next")));
        assert!(coming.try_recv().is_err(), "no event is received twice");
    }
}
