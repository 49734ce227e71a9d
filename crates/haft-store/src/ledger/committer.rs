//! One write on behalf of everybody who waits.
//!
//! Whoever comes while nobody writes leads: it writes its own row and all that came with it, and then hands the lead
//! to the first of those who came meanwhile. Where many come, a write that waits for the disk is made on another thread,
//! and more rows gather until that is awake; where one comes at a time, rousing a thread would take as long as the write.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::StoreError;
use tokio::sync::oneshot;

use super::journal::WRITE;
use super::record::Row;
use super::tail::Durability;

/// So many groups of one row in a row, and no company is expected.
const LONELY: u32 = 4;
/// How often company is waited for all the same.
const TRY_EVERY: u32 = 16;
/// Where a write took longer than this, the next one is made on a thread where it may take its time.
const QUICK: Duration = Duration::from_millis(1);

/// Groups all rows that wait at a moment behind one write.
pub(crate) struct Committer {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    commit: Box<Commit>,
    durability: Durability,
    /// How many groups of one row there were since the last larger one.
    alone: AtomicU32,
    /// The last write took its time.
    slow: AtomicBool,
}

/// Writes rows.
type Commit = dyn Fn(Vec<Row>) -> io::Result<()> + Send + Sync;

#[derive(Default)]
struct Queue {
    group: Group,
    /// Somebody has the lead.
    led: bool,
}

/// Rows that are written together.
#[derive(Default)]
struct Group {
    rows: Vec<Row>,
    /// Who gets the lead next: the first of those who came while another had it.
    first: Option<oneshot::Sender<Lead>>,
    others: Vec<oneshot::Sender<Written>>,
}

type Written = Result<(), Arc<str>>;

/// Where a row stands in its group.
enum Place {
    Leads(Lead),
    First(oneshot::Receiver<Lead>),
    Other(oneshot::Receiver<Written>),
}

impl Committer {
    /// Makes one that writes by `commit`, which may block.
    pub(crate) fn new(
        durability: Durability,
        commit: impl Fn(Vec<Row>) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let (queue, commit) = (Mutex::default(), Box::new(commit));
        let (alone, slow) = (AtomicU32::new(0), AtomicBool::new(false));
        Self { shared: Arc::new(Shared { queue, commit, durability, alone, slow }) }
    }

    /// Commits a row together with all others that wait, also if the caller stops waiting.
    pub(crate) async fn commit(&self, row: Row) -> Result<(), StoreError> {
        let written = match self.shared.push(row) {
            Place::Leads(lead) => {
                // Whoever is ready to run goes first, so that more rows share the write.
                if self.shared.expects_company() {
                    tokio::task::yield_now().await;
                }
                lead.write().await
            }
            Place::First(receiver) => match receiver.await {
                Ok(lead) => lead.write().await,
                Err(_) => Err(lost()),
            },
            Place::Other(receiver) => receiver.await.unwrap_or_else(|_| Err(lost())),
        };
        written.map_err(|why| StoreError::unavailable(WRITE, &*why))
    }
}

fn lost() -> Arc<str> {
    "the write was given up".into()
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

    /// Tells whether the next write is better made on another thread.
    fn is_slow(&self) -> bool {
        let alone = self.alone.load(Ordering::Relaxed) >= LONELY;
        self.slow.load(Ordering::Relaxed) || (self.durability == Durability::Disk && !alone)
    }

    /// Queues a row, and gives its owner the lead if nobody has it.
    fn push(self: &Arc<Self>, row: Row) -> Place {
        let mut queue = self.queue();
        let first = queue.group.rows.is_empty();
        queue.group.rows.push(row);
        if !first {
            let (sender, receiver) = oneshot::channel();
            queue.group.others.push(sender);
            Place::Other(receiver)
        } else if queue.led {
            let (sender, receiver) = oneshot::channel();
            queue.group.first = Some(sender);
            Place::First(receiver)
        } else {
            queue.led = true;
            Place::Leads(Lead(Some(Arc::clone(self))))
        }
    }

    /// Writes everything that waits.
    fn write(&self) -> Told {
        let Group { rows, others, .. } = std::mem::take(&mut self.queue().group);
        let calls = rows.len();
        let alone = if calls > 1 { 0 } else { self.alone.load(Ordering::Relaxed).wrapping_add(1) };
        self.alone.store(alone, Ordering::Relaxed);
        let started = Instant::now();
        let written = (self.commit)(rows).map_err(|error| {
            tracing::error!(%error, calls, "could not write the call journal");
            Arc::from(error.to_string())
        });
        self.slow.store(started.elapsed() > QUICK, Ordering::Relaxed);
        Told { written, others }
    }

    /// Gives the lead to the first of those who came meanwhile; writes for those whose first has gone away.
    fn hand_over(self: &Arc<Self>) {
        loop {
            let first = {
                let mut queue = self.queue();
                let first = queue.group.first.take();
                queue.led = first.is_some();
                first
            };
            let Some(first) = first else { return };
            let Err(mut refused) = first.send(Lead(Some(Arc::clone(self)))) else { return };
            refused.0 = None;
            drop(self.write());
        }
    }
}

/// The duty to write what waits. Whoever drops it has done that, also where the future that holds it is given up.
struct Lead(Option<Arc<Shared>>);

impl Lead {
    /// Writes, and returns what came of the leader's own group.
    async fn write(mut self) -> Written {
        let told = if self.0.as_ref().is_some_and(|shared| shared.is_slow()) {
            tokio::task::spawn_blocking(move || self.write_now()).await.ok().flatten()
        } else {
            self.write_now()
        };
        told.map_or_else(|| Err(lost()), |told| told.written.clone())
    }

    fn write_now(&mut self) -> Option<Told> {
        let over = HandOver(self.0.take()?);
        Some(over.0.write())
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        self.write_now();
    }
}

/// Hands the lead over when dropped: also where a write has panicked, as nobody would lead again.
struct HandOver(Arc<Shared>);

impl Drop for HandOver {
    fn drop(&mut self) {
        self.0.hand_over();
    }
}

/// What came of a group. Whoever drops it tells the others: the leader does, on a thread of the runtime, where to
/// rouse a task costs a fraction of what it costs from outside.
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

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
