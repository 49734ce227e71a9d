//! The journal of one process: calls are durable here before they reach SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use haft_core::catalog::{StorageFailure, StoreError};
use haft_core::id::CallId;
use tokio::sync::Notify;

use super::group_commit::{GroupCommit, WriteError};
use super::insert::LostCalls;
use super::record::CallRow;
use super::tail::{Segments, Tail};
use crate::files::layout::{JOURNAL_FOLDER, node_file};
use crate::files::lock;
use crate::settings::LedgerSync;

/// When this many bytes wait in memory, new calls wait for SQLite to catch up.
const MAX_PENDING_BYTES: usize = 64 * 1024 * 1024;
/// From this many rows on, the journal is drained at once.
const BACKLOG_ROWS: usize = 5000;
/// How long a call waits for SQLite to catch up.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(20);
/// After a write that took longer, the next one runs on a thread that may block.
const SLOW_WRITE: Duration = Duration::from_millis(1);

const RECORD: &str = "record a call";
const WRITE: &str = "write the call journal";
const TOO_SLOW: &str = "the database does not keep up with the calls";

/// The journal.
pub(crate) struct Journal {
    shared: Arc<Shared>,
    group_commit: GroupCommit,
    /// Signals that rows were moved to SQLite.
    drained: Notify,
    /// Held while rows are moved to SQLite.
    pub(crate) draining: tokio::sync::Mutex<()>,
    /// The file whose lock shows that this process is alive.
    node_lock: (PathBuf, File),
}

/// The state that the group commit shares with readers.
struct Shared {
    sync: LedgerSync,
    /// Held during a write, until the disk has confirmed it.
    tail: Mutex<Tail>,
    /// Held briefly; acquired after `tail` if both are needed.
    pending: Mutex<PendingRows>,
    /// Signals that many rows are pending.
    backlog: Notify,
    /// The last write was slow.
    slow: AtomicBool,
}

/// Rows that are durable but not in SQLite yet.
#[derive(Default)]
struct PendingRows {
    waiting: Rows,
    /// The rows that are being moved; dropped together when SQLite has them.
    moving: Arc<Rows>,
}

#[derive(Clone, Default)]
struct Rows {
    all: Vec<CallRow>,
    /// The index of the newest state of each call.
    latest: HashMap<CallId, usize>,
    bytes: usize,
}

impl Rows {
    fn push(&mut self, row: CallRow) {
        self.bytes += row.record.len();
        self.latest.insert(row.id, self.all.len());
        self.all.push(row);
    }

    fn find(&self, id: CallId) -> Option<CallRow> {
        self.latest.get(&id).and_then(|at| self.all.get(*at)).cloned()
    }
}

/// Rows to move to SQLite, and the last segment that holds some of them.
#[derive(Default)]
pub(crate) struct Batch {
    rows: Arc<Rows>,
    last_segment: u64,
}

impl Batch {
    pub(crate) fn rows(&self) -> &[CallRow] {
        &self.rows.all
    }
}

impl Shared {
    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, PendingRows> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes rows on this thread, or on one that may block if the write is expected to take long.
    async fn write(self: Arc<Self>, rows: Vec<CallRow>) -> Result<LostCalls, WriteError> {
        let written = if !self.sync.waits_for(&rows) && !self.slow.load(Ordering::Relaxed) {
            self.append(rows)
        } else {
            let appending = tokio::task::spawn_blocking(move || self.append(rows));
            appending.await.unwrap_or_else(|error| Err(io::Error::other(error)))
        };
        // Whether a claim holds is decided when the rows are moved to SQLite.
        written.map(|()| LostCalls::new()).map_err(|error| write_error(&error))
    }

    /// Makes rows durable and keeps them for SQLite. Blocks.
    fn append(&self, rows: Vec<CallRow>) -> io::Result<()> {
        let started = Instant::now();
        let mut tail = self.tail();
        tail.append(&rows)?;
        self.slow.store(started.elapsed() > SLOW_WRITE, Ordering::Relaxed);
        // Under the lock of the tail: a rotation then finds all rows of the segment it closes.
        let mut pending = self.pending();
        for row in rows {
            pending.waiting.push(row);
        }
        if pending.waiting.all.len() >= BACKLOG_ROWS {
            self.backlog.notify_one();
        }
        Ok(())
    }
}

fn write_error(error: &io::Error) -> WriteError {
    tracing::error!(%error, "cannot write the call journal");
    let message = error.to_string().into();
    WriteError { action: WRITE, failure: StorageFailure::of_io(error.kind()), message }
}

impl Journal {
    /// Starts the journal of this process.
    pub(crate) fn open(home: &Path, node: &str, sync: LedgerSync) -> io::Result<Self> {
        let folder = home.join(JOURNAL_FOLDER);
        std::fs::create_dir_all(&folder)?;
        // Until the lock is held, another process may consider this one dead.
        let lock_path = node_file(&folder, node);
        let held = lock::hold(&lock_path)?;
        let shared = Arc::new(Shared {
            sync,
            tail: Mutex::new(Tail::start(Segments::new(&folder, node), sync)?),
            pending: Mutex::default(),
            backlog: Notify::new(),
            slow: AtomicBool::new(false),
        });
        let writer = Arc::clone(&shared);
        let group_commit = GroupCommit::new(move |rows| Box::pin(Arc::clone(&writer).write(rows)));
        Ok(Self {
            shared,
            group_commit,
            drained: Notify::new(),
            draining: tokio::sync::Mutex::default(),
            node_lock: (lock_path, held),
        })
    }

    /// Appends a row. When this returns, it survives the end of the process, and a power failure if a promise rests on
    /// it; rows reach the disk with the next drain at the latest.
    pub(crate) async fn append(&self, row: CallRow) -> Result<(), StoreError> {
        if self.is_full() {
            self.wait_for_room().await?;
        }
        self.group_commit.commit(row).await
    }

    /// Checks whether a row could be appended now. Blocks.
    pub(crate) fn probe(&self) -> Result<(), StoreError> {
        if self.is_full() {
            return Err(StoreError::unavailable(RECORD, TOO_SLOW));
        }
        self.shared.tail().probe().map_err(|error| StoreError::unavailable(WRITE, error))
    }

    fn is_full(&self) -> bool {
        let pending = self.shared.pending();
        pending.waiting.bytes + pending.moving.bytes >= MAX_PENDING_BYTES
    }

    async fn wait_for_room(&self) -> Result<(), StoreError> {
        let wait = async {
            loop {
                let drained = self.drained.notified();
                if !self.is_full() {
                    return;
                }
                self.shared.backlog.notify_one();
                drained.await;
            }
        };
        tokio::time::timeout(CATCH_UP_TIMEOUT, wait)
            .await
            .map_err(|_| StoreError::unavailable(RECORD, TOO_SLOW))
    }

    /// Waits until many rows are pending.
    pub(crate) async fn backlog(&self) {
        self.shared.backlog.notified().await;
    }

    /// Returns the newest state of a call that is not in SQLite yet.
    pub(crate) fn find(&self, id: CallId) -> Option<CallRow> {
        let pending = self.shared.pending();
        pending.waiting.find(id).or_else(|| pending.moving.find(id))
    }

    /// Starts a new segment and returns all waiting rows. Blocks.
    pub(crate) fn rotate(&self) -> io::Result<Batch> {
        if self.shared.pending().waiting.all.is_empty() {
            return Ok(Batch::default());
        }
        // Created without the lock, so that writers do not wait for the folder.
        let (segments, before, preallocation) = {
            let tail = self.shared.tail();
            (tail.segments.clone(), tail.segment, tail.preallocation())
        };
        let (file, number) = segments.create(before, preallocation)?;
        let mut tail = self.shared.tail();
        if tail.segment == before {
            tail.switch_to(file, number);
        } else {
            // A torn segment was replaced meanwhile; segment numbers have to grow.
            let (file, number) = segments.create(tail.segment, 0)?;
            tail.switch_to(file, number);
        }
        let last_segment = tail.old.last().copied().unwrap_or_default();
        let mut pending = self.shared.pending();
        let rows = Arc::new(std::mem::take(&mut pending.waiting));
        pending.moving = Arc::clone(&rows);
        Ok(Batch { rows, last_segment })
    }

    /// Drops rows that SQLite has stored, and removes their segments. Blocks.
    pub(crate) fn discard(&self, batch: &Batch) {
        self.shared.pending().moving = Arc::default();
        let (segments, moved) = {
            let mut tail = self.shared.tail();
            let (moved, old): (Vec<u64>, Vec<u64>) =
                std::mem::take(&mut tail.old).into_iter().partition(|at| *at <= batch.last_segment);
            tail.old = old;
            (tail.segments.clone(), moved)
        };
        for number in moved {
            segments.remove(number);
        }
        self.drained.notify_waiters();
    }

    /// Puts rows that SQLite did not store back in front of the waiting ones.
    pub(crate) fn restore(&self, batch: Batch) {
        let mut pending = self.shared.pending();
        pending.moving = Arc::default();
        let later = std::mem::replace(&mut pending.waiting, Arc::unwrap_or_clone(batch.rows));
        later.all.into_iter().for_each(|row| pending.waiting.push(row));
    }

    /// Rejects all further rows.
    pub(crate) fn close(&self) {
        self.shared.tail().closed = true;
    }

    /// Removes the files of a journal that is closed and drained.
    pub(crate) fn remove(&self) {
        let tail = self.shared.tail();
        if self.shared.pending().waiting.all.is_empty() && tail.old.is_empty() {
            tail.segments.remove(tail.segment);
            let _ = std::fs::remove_file(&self.node_lock.0);
        }
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
