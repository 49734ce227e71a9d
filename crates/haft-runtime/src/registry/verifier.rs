//! Finds out in the background whether changed tools can run.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::watch;

use crate::executors::Executors;
use crate::registry::changes::ChangeCounts;
use crate::registry::entry::Entry;

/// The minimum number of definitions per thread.
const MIN_CHUNK: usize = 200;

/// Compiles changed definitions, one batch at a time, off the async workers.
pub(super) struct Verifier {
    executors: Arc<Executors>,
    /// Notified if a tool became ready or stopped being ready.
    changes: watch::Sender<ChangeCounts>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    entries: Vec<Arc<Entry>>,
    is_running: bool,
}

impl Verifier {
    pub(super) fn new(executors: Arc<Executors>, changes: watch::Sender<ChangeCounts>) -> Self {
        Self { executors, changes, queue: Mutex::default() }
    }

    /// Verifies tools in the background. Without a runtime it does so on this thread.
    pub(super) fn enqueue(self: &Arc<Self>, mut entries: Vec<Arc<Entry>>) {
        entries.retain(|entry| entry.needs_verification());
        if entries.is_empty() {
            return;
        }
        let Ok(runtime) = Handle::try_current() else {
            self.verify(&entries);
            return;
        };
        let mut queue = self.lock();
        queue.entries.extend(entries);
        if !std::mem::replace(&mut queue.is_running, true) {
            let verifier = Arc::clone(self);
            runtime.spawn_blocking(move || verifier.run());
        }
    }

    fn run(&self) {
        loop {
            let entries = {
                let mut queue = self.lock();
                queue.is_running = !queue.entries.is_empty();
                std::mem::take(&mut queue.entries)
            };
            if entries.is_empty() {
                return;
            }
            // A panic must not end the queue.
            if catch_unwind(AssertUnwindSafe(|| self.verify(&entries))).is_err() {
                tracing::error!("verification of a definition panicked");
            }
        }
    }

    /// Verifies tools on this thread and, if there are many, on further ones.
    pub(super) fn verify(&self, entries: &[Arc<Entry>]) {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut chunks = entries.chunks(entries.len().div_ceil(cores).max(MIN_CHUNK));
        let Some(first) = chunks.next() else { return };
        let verify = |chunk: &[Arc<Entry>]| {
            for entry in chunk {
                if entry.verify(&self.executors) {
                    self.changes.send_modify(|counts| counts.add(&entry.tool.tenant));
                }
            }
        };
        std::thread::scope(|scope| {
            chunks.for_each(|chunk| drop(scope.spawn(move || verify(chunk))));
            verify(first);
        });
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
