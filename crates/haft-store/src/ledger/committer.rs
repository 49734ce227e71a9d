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
    /// Who waits for the rows, in their order.
    waiting: Vec<oneshot::Sender<Result<(), Arc<str>>>>,
    /// The thread shall take what waits.
    due: bool,
    stop: bool,
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
        let (done, receiver) = oneshot::channel();
        if self.shared.push(row, done) {
            let due = Due(&self.shared);
            // Whoever is ready to run goes first, so that more rows share the wait. It is short where little goes on.
            tokio::task::yield_now().await;
            drop(due);
        }
        let result = receiver.await.unwrap_or_else(|_| Err("the store is closing".into()));
        result.map_err(|why| StoreError::unavailable(WRITE, &*why))
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

    /// Queues a row; tells whether it is the first of its group, whose owner rouses the thread.
    fn push(&self, row: Row, done: oneshot::Sender<Result<(), Arc<str>>>) -> bool {
        let mut queue = self.queue();
        queue.rows.push(row);
        queue.waiting.push(done);
        queue.rows.len() == 1
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
            queue.due = false;
            let (rows, waiting) = (std::mem::take(&mut queue.rows), std::mem::take(&mut queue.waiting));
            drop(queue);
            if rows.is_empty() {
                continue;
            }
            let result = commit(rows).map_err(|error| {
                tracing::error!(%error, calls = waiting.len(), "could not write the call journal");
                Arc::from(error.to_string())
            });
            for waiter in waiting {
                // Who stopped waiting does not mind.
                let _ = waiter.send(result.clone());
            }
        }
    }
}
