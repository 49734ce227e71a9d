//! The thread that waits for the disk on behalf of everybody.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use haft_core::catalog::StoreError;
use tokio::sync::oneshot;

use super::journal::WRITE;
use super::record::Row;

/// Groups all rows that wait at a moment behind one write and one wait for the disk.
pub(crate) struct Committer {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    rows: Vec<Row>,
    /// Who waits for the rows; the first one sees to the others.
    first: Option<oneshot::Sender<Told>>,
    others: Vec<oneshot::Sender<Written>>,
    /// The thread shall take what waits.
    due: bool,
    stop: bool,
}

type Written = Result<(), Arc<str>>;

/// Where a row stands in its group.
enum Place {
    First(oneshot::Receiver<Told>),
    Other(oneshot::Receiver<Written>),
}

/// What came of a group. Whoever drops it tells the others: the first of them does, on a thread of the runtime, where
/// to rouse a task costs a fraction of what it costs from outside.
struct Told {
    written: Written,
    others: Vec<oneshot::Sender<Written>>,
}

impl Drop for Told {
    fn drop(&mut self) {
        for other in self.others.drain(..) {
            // Who stopped waiting does not mind.
            let _ = other.send(self.written.clone());
        }
    }
}

impl Committer {
    /// Starts the thread, which hands groups of rows to `commit`.
    pub(crate) fn start(commit: impl Fn(Vec<Row>) -> io::Result<()> + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("haft-journal".into()).spawn(move || theirs.serve(&commit))?;
        Ok(Self { shared })
    }

    /// Commits a row together with all others that wait, also if the caller stops waiting.
    pub(crate) async fn commit(&self, row: Row) -> Result<(), StoreError> {
        let written = match self.shared.push(row) {
            Place::First(receiver) => {
                let due = Due(&self.shared);
                // Whoever is ready to run goes first, so that more rows share the wait. It is short where little goes on.
                tokio::task::yield_now().await;
                drop(due);
                receiver.await.map(|told| told.written.clone())
            }
            Place::Other(receiver) => receiver.await,
        };
        let written = written.unwrap_or_else(|_| Err("the store is closing".into()));
        written.map_err(|why| StoreError::unavailable(WRITE, &*why))
    }
}

impl Drop for Committer {
    fn drop(&mut self) {
        self.shared.queue().stop = true;
        self.shared.wake.notify_one();
    }
}

/// Rouses the thread when dropped, also where the future that holds it is given up.
struct Due<'a>(&'a Shared);

impl Drop for Due<'_> {
    fn drop(&mut self) {
        self.0.queue().due = true;
        self.0.wake.notify_one();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a row. The owner of the first one of a group rouses the thread.
    fn push(&self, row: Row) -> Place {
        let mut queue = self.queue();
        queue.rows.push(row);
        if queue.rows.len() == 1 {
            let (sender, receiver) = oneshot::channel();
            queue.first = Some(sender);
            Place::First(receiver)
        } else {
            let (sender, receiver) = oneshot::channel();
            queue.others.push(sender);
            Place::Other(receiver)
        }
    }

    fn serve(&self, commit: &impl Fn(Vec<Row>) -> io::Result<()>) {
        loop {
            let mut queue = self.queue();
            while !queue.due && !queue.stop {
                queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if !queue.due {
                return;
            }
            let emptied = Queue { stop: queue.stop, ..Queue::default() };
            let Queue { rows, first, others, .. } = std::mem::replace(&mut *queue, emptied);
            drop(queue);
            if rows.is_empty() {
                continue;
            }
            let calls = rows.len();
            let written = commit(rows).map_err(|error| {
                tracing::error!(%error, calls, "could not write the call journal");
                Arc::from(error.to_string())
            });
            let told = Told { written, others };
            if let Some(first) = first {
                // Where it stopped waiting, what it does not take is dropped here, and so tells the others.
                let _ = first.send(told);
            }
        }
    }
}
