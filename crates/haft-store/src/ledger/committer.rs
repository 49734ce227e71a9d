//! One write on behalf of everybody who waits: by a thread, where it waits for the disk, else by who came first.

use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use haft_core::catalog::StoreError;
use tokio::sync::oneshot;

use super::journal::WRITE;
use super::record::Row;

/// So many groups of one row in a row, and no company is expected.
const LONELY: u32 = 4;
/// How often company is waited for all the same.
const TRY_EVERY: u32 = 16;

/// Groups all rows that wait at a moment behind one write.
pub(crate) struct Committer {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    way: Way,
    commit: Box<Commit>,
    /// How many groups of one row there were since the last larger one.
    alone: AtomicU32,
}

/// Writes rows.
type Commit = dyn Fn(Vec<Row>) -> io::Result<()> + Send + Sync;

/// Who writes.
enum Way {
    /// A thread, which is roused by this.
    Thread(Condvar),
    /// Whoever came first: the write takes no longer than it takes to rouse another.
    InPlace,
}

#[derive(Default)]
struct Queue {
    group: Group,
    /// The thread shall take what waits.
    due: bool,
    stop: bool,
}

/// Rows that are written together.
#[derive(Default)]
struct Group {
    rows: Vec<Row>,
    /// Who waits for the rows; the first one sees to the others.
    first: Option<oneshot::Sender<Told>>,
    others: Vec<oneshot::Sender<Written>>,
}

impl Queue {
    fn take(&mut self) -> Group {
        self.due = false;
        std::mem::take(&mut self.group)
    }
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
    /// Makes one whose writes wait for the disk.
    pub(crate) fn on_a_thread(
        commit: impl Fn(Vec<Row>) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let made = Self::new(Way::Thread(Condvar::new()), commit);
        let theirs = Arc::clone(&made.shared);
        std::thread::Builder::new().name("haft-journal".into()).spawn(move || theirs.serve())?;
        Ok(made)
    }

    /// Makes one whose writes wait for nothing.
    pub(crate) fn in_place(commit: impl Fn(Vec<Row>) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::new(Way::InPlace, commit)
    }

    fn new(way: Way, commit: impl Fn(Vec<Row>) -> io::Result<()> + Send + Sync + 'static) -> Self {
        let commit = Box::new(commit);
        Self { shared: Arc::new(Shared { queue: Mutex::default(), way, commit, alone: AtomicU32::new(0) }) }
    }

    /// Commits a row together with all others that wait, also if the caller stops waiting.
    pub(crate) async fn commit(&self, row: Row) -> Result<(), StoreError> {
        let written = match self.shared.push(row) {
            Place::First(receiver) => {
                let due = Due(&self.shared);
                // Whoever is ready to run goes first, so that more rows share the write.
                if self.shared.expects_company() {
                    tokio::task::yield_now().await;
                }
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
        if let Way::Thread(wake) = &self.shared.way {
            wake.notify_one();
        }
    }
}

/// Sees to the group when dropped, also where the future that holds it is given up.
struct Due<'a>(&'a Shared);

impl Drop for Due<'_> {
    fn drop(&mut self) {
        match &self.0.way {
            Way::Thread(wake) => {
                self.0.queue().due = true;
                wake.notify_one();
            }
            Way::InPlace => {
                let group = self.0.queue().take();
                self.0.write(group);
            }
        }
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether to wait a moment for others. Where nobody came for some time, it is only tried now and then.
    fn expects_company(&self) -> bool {
        let alone = self.alone.load(Ordering::Relaxed);
        alone < LONELY || alone.is_multiple_of(TRY_EVERY)
    }

    /// Queues a row. The owner of the first one of a group sees to it.
    fn push(&self, row: Row) -> Place {
        let group = &mut self.queue().group;
        group.rows.push(row);
        if group.rows.len() == 1 {
            let (sender, receiver) = oneshot::channel();
            group.first = Some(sender);
            Place::First(receiver)
        } else {
            let (sender, receiver) = oneshot::channel();
            group.others.push(sender);
            Place::Other(receiver)
        }
    }

    fn serve(&self) {
        let Way::Thread(wake) = &self.way else { return };
        loop {
            let mut queue = self.queue();
            while !queue.due && !queue.stop {
                queue = wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if !queue.due {
                return;
            }
            let group = queue.take();
            drop(queue);
            self.write(group);
        }
    }

    fn write(&self, Group { rows, first, others }: Group) {
        let calls = rows.len();
        let alone = if calls > 1 { 0 } else { self.alone.load(Ordering::Relaxed).wrapping_add(1) };
        self.alone.store(alone, Ordering::Relaxed);
        let written = (self.commit)(rows).map_err(|error| {
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
