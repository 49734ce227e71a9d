//! Group commit: one write stores all calls that are waiting for it.
//!
//! The journal and the PostgreSQL ledger use the same mechanism. The first call to arrive starts a task that writes
//! everything in the queue. Calls that arrive during a write form the next group.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use haft_core::catalog::{StorageFailure, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use super::insert::LostCalls;
use super::record::CallRow;

/// Calls beyond this number wait before they enter the queue.
const MAX_QUEUED: usize = 10_000;

/// Groups the calls that wait for storage into one write.
pub(crate) struct GroupCommit {
    shared: Arc<Shared>,
    slots: Arc<Semaphore>,
}

struct Shared {
    write: Box<Write>,
    queue: Mutex<Queue>,
    /// Held during a write, so that groups are stored in order.
    writing: tokio::sync::Mutex<()>,
}

/// Stores a group of calls: all of them or none, without those whose claim is lost.
type Write = dyn Fn(Vec<CallRow>) -> BoxFuture<'static, Result<LostCalls, WriteError>> + Send + Sync;

#[derive(Default)]
struct Queue {
    entries: Vec<QueuedCall>,
    /// A task has been started that will write the queue.
    scheduled: bool,
}

struct QueuedCall {
    row: CallRow,
    done: oneshot::Sender<Result<Stored, WriteError>>,
    /// Owned by the entry, because the caller may stop waiting.
    slot: OwnedSemaphorePermit,
}

/// What became of a call whose group was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Kept,
    ClaimLost,
}

/// Why a group was not stored; every call of the group gets a copy.
#[derive(Debug, Clone)]
pub(crate) struct WriteError {
    pub(crate) action: &'static str,
    pub(crate) failure: StorageFailure,
    pub(crate) message: Arc<str>,
}

impl From<WriteError> for StoreError {
    fn from(error: WriteError) -> Self {
        let WriteError { action, failure, message } = error;
        StoreError::Unavailable { action: action.to_owned(), failure, source: message.as_ref().into() }
    }
}

impl GroupCommit {
    /// Creates a group commit that stores groups with `write`.
    pub(crate) fn new(
        write: impl Fn(Vec<CallRow>) -> BoxFuture<'static, Result<LostCalls, WriteError>> + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared {
            write: Box::new(write),
            queue: Mutex::default(),
            writing: tokio::sync::Mutex::default(),
        };
        Self { shared: Arc::new(shared), slots: Arc::new(Semaphore::new(MAX_QUEUED)) }
    }

    /// Stores a call together with all others in the queue, even if the caller stops waiting.
    pub(crate) async fn commit(&self, row: CallRow) -> Result<(), StoreError> {
        let slot = Arc::clone(&self.slots).acquire_owned().await;
        let slot = slot.map_err(|error| StoreError::unavailable("record a call", error))?;
        let (done, stored) = oneshot::channel();
        if self.shared.push(QueuedCall { row, done, slot }) {
            let shared = Arc::clone(&self.shared);
            tokio::spawn(async move { shared.write_queue().await });
        }
        match stored.await {
            Ok(Ok(Stored::Kept)) => Ok(()),
            Ok(Ok(Stored::ClaimLost)) => Err(StoreError::ClaimLost),
            Ok(Err(error)) => Err(error.into()),
            Err(error) => Err(StoreError::unavailable("record a call", error)),
        }
    }

    /// Waits until every call queued so far is stored or has failed.
    pub(crate) async fn flush(&self) {
        self.shared.write_queue().await;
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a call and returns whether a task has to be started to write it.
    fn push(&self, call: QueuedCall) -> bool {
        let mut queue = self.queue();
        queue.entries.push(call);
        !std::mem::replace(&mut queue.scheduled, true)
    }

    async fn write_queue(&self) {
        let _writing = self.writing.lock().await;
        let entries = {
            let mut queue = self.queue();
            queue.scheduled = false;
            std::mem::take(&mut queue.entries)
        };
        if entries.is_empty() {
            return;
        }
        let (rows, waiters): (Vec<CallRow>, Vec<_>) = entries
            .into_iter()
            .map(|QueuedCall { row, done, slot }| {
                let id = row.id;
                (row, (id, done, slot))
            })
            .unzip();
        let result = (self.write)(rows).await;
        for (id, done, _slot) in waiters {
            let result = match &result {
                Ok(lost) if lost.contains(&id) => Ok(Stored::ClaimLost),
                Ok(_) => Ok(Stored::Kept),
                Err(error) => Err(error.clone()),
            };
            // The caller may have stopped waiting.
            let _ = done.send(result);
        }
    }
}

#[cfg(test)]
#[path = "group_commit_tests.rs"]
mod tests;
