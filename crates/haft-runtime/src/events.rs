//! Calls from the queue that run on this node, their events and their cancellation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haft_core::executor::{CallEvent, EventSink};
use haft_core::id::CallId;
use haft_core::ledger::NumberedEvent;
use haft_core::name::TenantId;
use tokio_util::sync::CancellationToken;

use crate::event_log::{EventLog, LogEntry, LogLimits, LogReader};

/// The number of events that a slow reader may lag behind and that a new reader receives: readers can subscribe only after
/// the call has started.
const LIMITS: LogLimits = LogLimits::events(256);

/// A call from the queue that runs on this node.
pub struct BackgroundCall {
    /// The tenant for which it runs.
    pub tenant: TenantId,
    /// Cancels it.
    pub cancel: CancellationToken,
    log: Arc<EventLog<CallEvent>>,
    /// The number of the newest event that is stored for readers on other nodes.
    saved: Mutex<u64>,
}

impl BackgroundCall {
    /// Returns a reader of the events after a number; the log is closed when the call ends.
    pub fn events(&self, after: u64) -> LogReader<CallEvent> {
        self.log.reader(after)
    }

    /// Returns the latest events that are not stored yet, and marks them as stored.
    pub(crate) fn take_unsaved(&self) -> Vec<NumberedEvent> {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let unsaved = self.log.after(*saved, usize::MAX).entries;
        *saved = unsaved.last().map_or(*saved, |entry| entry.number);
        unsaved.into_iter().map(|LogEntry { number, event }| NumberedEvent { number, event }).collect()
    }
}

impl EventSink for BackgroundCall {
    fn emit(&self, event: CallEvent) {
        self.log.push(event);
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
    ) -> (Arc<BackgroundCall>, RegistrationGuard) {
        let running = Arc::new(BackgroundCall {
            tenant,
            cancel,
            log: Arc::new(EventLog::new(LIMITS)),
            saved: Mutex::default(),
        });
        self.lock().insert(id, Arc::clone(&running));
        let log = Arc::clone(&running.log);
        (running, RegistrationGuard { background: Arc::clone(self), id, log })
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

/// Keeps a call listed; dropping it closes the log.
pub(crate) struct RegistrationGuard {
    background: Arc<BackgroundCalls>,
    id: CallId,
    log: Arc<EventLog<CallEvent>>,
}

impl Drop for RegistrationGuard {
    fn drop(&mut self) {
        // Removed before the log is closed, so that its readers do not find the call again.
        self.background.lock().remove(&self.id);
        self.log.close();
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[tokio::test]
    async fn a_late_reader_receives_the_latest_events_and_the_end() {
        let background = Arc::new(BackgroundCalls::default());
        let cancel = CancellationToken::new();
        let (running, listed) = background.insert(CallId(Uuid::now_v7()), TenantId::default_tenant(), cancel);
        for number in 0..LIMITS.events + 2 {
            running.emit(CallEvent::Output(number.to_string()));
        }
        let mut reader = running.events(0);
        let batch = reader.read(usize::MAX).await;
        assert!(batch.missed);
        assert_eq!(batch.entries.len(), LIMITS.events);
        let output = |text: &str| CallEvent::Output(text.to_owned());
        assert_eq!(batch.entries.first(), Some(&LogEntry { number: 3, event: output("2") }));
        assert_eq!(running.take_unsaved().len(), LIMITS.events);
        running.emit(output("next"));
        assert_eq!(running.take_unsaved(), [NumberedEvent { number: 259, event: output("next") }]);
        assert_eq!(running.take_unsaved(), []);
        drop(listed);
        let batch = reader.read(usize::MAX).await;
        assert_eq!(batch.entries, [LogEntry { number: 259, event: output("next") }]);
        assert!(batch.closed);
    }
}
