//! The journal of one process: where calls are durable before they reach SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use tokio::sync::Notify;

use super::committer::Committer;
use super::record::Row;
use super::tail::{Durability, Segments, Tail};
use crate::files::lock;

/// The folder of the journal.
pub(crate) const FOLDER: &str = "journal";
/// More than this waits in memory only while SQLite catches up.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// From here on, the folding is hurried.
const MANY_ROWS: usize = 5000;
/// How long a call waits for SQLite to catch up.
const PATIENCE: Duration = Duration::from_secs(20);

const RECORD: &str = "record a call";
pub(super) const WRITE: &str = "write the call journal";

/// The journal.
pub(crate) struct Journal {
    core: Arc<Core>,
    committer: Committer,
    /// Signals that rows were moved to SQLite.
    folded: Notify,
    /// One folding at a time.
    pub(crate) folding: tokio::sync::Mutex<()>,
    /// The file whose lock says that this process lives; held while it does.
    alive: (PathBuf, File),
}

/// What the committer shares with everybody else.
struct Core {
    /// Held while rows are written, and while the disk is waited for.
    tail: Mutex<Tail>,
    /// Held for a moment only; taken after `tail` where both are.
    kept: Mutex<Kept>,
    /// Signals that there are many rows to move.
    crowded: Notify,
}

/// Rows that are durable and not in SQLite yet.
#[derive(Default)]
struct Kept {
    waiting: Rows,
    /// Those that are being moved: forgotten at once when they are there.
    moving: Arc<Rows>,
}

#[derive(Clone, Default)]
struct Rows {
    all: Vec<Row>,
    /// Where the newest state of each call is.
    latest: HashMap<CallId, usize>,
    bytes: usize,
}

impl Rows {
    fn push(&mut self, row: Row) {
        self.bytes += row.record.len();
        self.latest.insert(row.id, self.all.len());
        self.all.push(row);
    }

    fn find(&self, id: CallId) -> Option<Row> {
        self.latest.get(&id).and_then(|at| self.all.get(*at)).cloned()
    }
}

/// Rows to move to SQLite, and the last segment that holds some of them.
#[derive(Default)]
pub(crate) struct Batch {
    rows: Arc<Rows>,
    last: u64,
}

impl Batch {
    pub(crate) fn rows(&self) -> &[Row] {
        &self.rows.all
    }
}

impl Core {
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes rows durable and keeps them for SQLite.
    fn commit(&self, rows: Vec<Row>) -> io::Result<()> {
        let mut tail = self.tail();
        tail.append(&rows)?;
        // Under the lock of the tail: who turns to another segment finds the rows of the one before.
        let mut kept = self.kept();
        for row in rows {
            kept.waiting.push(row);
        }
        if kept.waiting.all.len() >= MANY_ROWS {
            self.crowded.notify_one();
        }
        Ok(())
    }
}

impl Journal {
    /// Starts the journal of this process.
    pub(crate) fn open(home: &Path, node: &str, durability: Durability) -> io::Result<Self> {
        let folder = home.join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        // Another process may take this one for dead until the lock is held.
        let alive = node_file(&folder, node);
        let held = lock::hold(&alive)?;
        let tail = Tail::start(Segments::new(&folder, node), durability)?;
        let core = Arc::new(Core { tail: Mutex::new(tail), kept: Mutex::default(), crowded: Notify::new() });
        let theirs = Arc::clone(&core);
        let committer = Committer::new(durability, move |rows| theirs.commit(rows));
        Ok(Self {
            core,
            committer,
            folded: Notify::new(),
            folding: tokio::sync::Mutex::default(),
            alive: (alive, held),
        })
    }

    /// Appends a row; it is durable when this returns.
    pub(crate) async fn append(&self, row: Row) -> Result<(), StoreError> {
        if self.is_full() {
            self.wait_for_room().await?;
        }
        self.committer.commit(row).await
    }

    /// Tries whether a row could be appended now. Blocks.
    pub(crate) fn probe(&self) -> Result<(), StoreError> {
        if self.is_full() {
            return Err(StoreError::unavailable(RECORD, "the database does not keep up"));
        }
        self.core.tail().probe().map_err(|error| StoreError::unavailable(WRITE, error))
    }

    fn is_full(&self) -> bool {
        let kept = self.core.kept();
        kept.waiting.bytes + kept.moving.bytes >= MAX_BYTES
    }

    async fn wait_for_room(&self) -> Result<(), StoreError> {
        let wait = async {
            loop {
                let folded = self.folded.notified();
                if !self.is_full() {
                    return;
                }
                self.core.crowded.notify_one();
                folded.await;
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .map_err(|_| StoreError::unavailable(RECORD, "the database does not keep up"))
    }

    /// Waits until there are many rows to move.
    pub(crate) async fn crowded(&self) {
        self.core.crowded.notified().await;
    }

    /// Returns the newest state of a call that is not in SQLite yet.
    pub(crate) fn find(&self, id: CallId) -> Option<Row> {
        let kept = self.core.kept();
        kept.waiting.find(id).or_else(|| kept.moving.find(id))
    }

    /// Starts a new segment and hands out everything that waits. Blocks.
    pub(crate) fn rotate(&self) -> io::Result<Batch> {
        if self.core.kept().waiting.all.is_empty() {
            return Ok(Batch::default());
        }
        // Made beside those who write: they do not wait for the folder.
        let (segments, before, room) = {
            let tail = self.core.tail();
            (tail.segments.clone(), tail.segment, tail.room())
        };
        let (file, number) = segments.make(before, room)?;
        let mut tail = self.core.tail();
        if tail.segment == before {
            tail.turn_to(file, number);
        } else {
            // A torn segment was left meanwhile; the numbers have to grow.
            let (file, number) = segments.make(tail.segment, 0)?;
            tail.turn_to(file, number);
        }
        let last = tail.old.last().copied().unwrap_or_default();
        let mut kept = self.core.kept();
        let rows = Arc::new(std::mem::take(&mut kept.waiting));
        kept.moving = Arc::clone(&rows);
        Ok(Batch { rows, last })
    }

    /// The rows are in SQLite: forgets them and their segments. Blocks.
    pub(crate) fn forget(&self, batch: &Batch) {
        self.core.kept().moving = Arc::default();
        let (segments, moved) = {
            let mut tail = self.core.tail();
            let (moved, old): (Vec<u64>, Vec<u64>) =
                std::mem::take(&mut tail.old).into_iter().partition(|at| *at <= batch.last);
            tail.old = old;
            (tail.segments.clone(), moved)
        };
        for number in moved {
            segments.remove(number);
        }
        self.folded.notify_waiters();
    }

    /// The rows could not be moved: they wait again.
    pub(crate) fn put_back(&self, batch: Batch) {
        let mut kept = self.core.kept();
        kept.moving = Arc::default();
        let later = std::mem::replace(&mut kept.waiting, Arc::unwrap_or_clone(batch.rows));
        later.all.into_iter().for_each(|row| kept.waiting.push(row));
    }

    /// Takes nothing any more.
    pub(crate) fn close(&self) {
        self.core.tail().closed = true;
    }

    /// Leaves nothing behind. Call it when it is closed and everything is folded.
    pub(crate) fn remove(&self) {
        let tail = self.core.tail();
        if self.core.kept().waiting.all.is_empty() && tail.old.is_empty() {
            tail.segments.remove(tail.segment);
            let _ = std::fs::remove_file(&self.alive.0);
        }
    }
}

/// Returns the file whose lock says that a process lives.
pub(crate) fn node_file(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.node"))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
