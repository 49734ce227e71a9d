//! The journal of one process: where calls are durable before they reach SQLite.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::id::CallId;
use tokio::sync::Notify;

use super::record::Row;
use super::segment;
use super::syncer::{Syncer, Written};
use crate::files::lock;
use crate::files::write::sync_folder;

/// The folder of the journal.
pub(crate) const FOLDER: &str = "journal";
/// More than this waits in memory only while SQLite catches up.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// From here on, the folding is hurried.
pub(crate) const MANY_ROWS: usize = 2000;
/// How long a call waits for SQLite to catch up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The journal.
pub(crate) struct Journal {
    folder: PathBuf,
    node: String,
    writing: Mutex<Writing>,
    syncer: Option<Syncer>,
    /// Signals that rows were moved to SQLite.
    pub(crate) folded: Notify,
    /// Signals that there are many rows to move.
    pub(crate) crowded: Notify,
    /// One folding at a time.
    pub(crate) folding: tokio::sync::Mutex<()>,
    /// Held while this process lives.
    _alive: File,
}

struct Writing {
    file: Arc<File>,
    length: u64,
    segment: u64,
    /// Something stands in the segment that hides what would follow it.
    torn: bool,
    /// Nothing is taken any more.
    closed: bool,
    /// Segments whose rows are not in SQLite yet, besides the one that is written.
    old: Vec<u64>,
    rows: Vec<Arc<Row>>,
    bytes: usize,
    latest: HashMap<CallId, Arc<Row>>,
}

/// Rows to move to SQLite, and the last segment that holds some of them.
#[derive(Default)]
pub(crate) struct Batch {
    pub(crate) rows: Vec<Arc<Row>>,
    last: u64,
}

impl Writing {
    /// Goes on in another segment.
    fn turn_to(&mut self, file: Arc<File>, number: u64) {
        self.old.push(self.segment);
        self.segment = number;
        self.file = file;
        self.length = 0;
        self.torn = false;
    }
}

impl Journal {
    /// Starts the journal of this process.
    pub(crate) fn open(home: &Path, node: &str, sync: bool) -> io::Result<Self> {
        let folder = home.join(FOLDER);
        std::fs::create_dir_all(&folder)?;
        // Another process may take this one for dead until the lock is held.
        let alive = lock::hold(&node_file(&folder, node))?;
        let file = Arc::new(segment::create(&segment_file(&folder, node, 1))?);
        sync_folder(&folder)?;
        let syncer = if sync { Some(Syncer::start()?) } else { None };
        let writing = Writing {
            file,
            length: 0,
            segment: 1,
            torn: false,
            closed: false,
            old: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
            latest: HashMap::new(),
        };
        Ok(Self {
            folder,
            node: node.to_owned(),
            writing: Mutex::new(writing),
            syncer,
            folded: Notify::new(),
            crowded: Notify::new(),
            folding: tokio::sync::Mutex::default(),
            _alive: alive,
        })
    }

    fn writing(&self) -> MutexGuard<'_, Writing> {
        self.writing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a row; it is durable when this returns.
    pub(crate) async fn append(&self, row: Row) -> Result<(), StoreError> {
        self.wait_for_room().await?;
        let frame = segment::frame(&row.record).map_err(broken)?;
        match self.write(row, &frame).map_err(broken)? {
            Some(written) => written.on_disk().await,
            None => Ok(()),
        }
    }

    fn write(&self, row: Row, frame: &[u8]) -> io::Result<Option<Written>> {
        let mut writing = self.writing();
        if writing.closed {
            return Err(io::Error::other("the store is closed"));
        }
        if writing.torn {
            let (file, number) = self.new_segment(writing.segment)?;
            writing.turn_to(file, number);
        }
        if let Err(error) = (&*writing.file).write_all(frame) {
            // What was written in part must not hide the records that follow.
            writing.torn = writing.file.set_len(writing.length).is_err();
            return Err(error);
        }
        writing.length += frame.len() as u64;
        writing.bytes += frame.len();
        let row = Arc::new(row);
        writing.latest.insert(row.id, Arc::clone(&row));
        writing.rows.push(row);
        if writing.rows.len() >= MANY_ROWS {
            self.crowded.notify_one();
        }
        let file = Arc::clone(&writing.file);
        drop(writing);
        Ok(self.syncer.as_ref().map(|syncer| syncer.wrote(&file)))
    }

    async fn wait_for_room(&self) -> Result<(), StoreError> {
        let wait = async {
            loop {
                let folded = self.folded.notified();
                if self.writing().bytes < MOST_BYTES {
                    return;
                }
                self.crowded.notify_one();
                folded.await;
            }
        };
        tokio::time::timeout(PATIENCE, wait)
            .await
            .map_err(|error| StoreError::unavailable("record a call: the database does not keep up", error))
    }

    /// Returns the newest state of a call that is not in SQLite yet.
    pub(crate) fn find(&self, id: CallId) -> Option<Arc<Row>> {
        self.writing().latest.get(&id).cloned()
    }

    /// Starts a new segment and hands out everything that waits. Blocks.
    pub(crate) fn rotate(&self) -> io::Result<Batch> {
        if self.writing().rows.is_empty() {
            return Ok(Batch::default());
        }
        // Made beside those who write: they do not wait for the folder.
        let before = self.writing().segment;
        let (file, number) = self.new_segment(before)?;
        let mut writing = self.writing();
        if writing.segment == before {
            writing.turn_to(file, number);
        } else {
            // A torn segment was left meanwhile; the numbers have to grow.
            let (file, number) = self.new_segment(writing.segment)?;
            writing.turn_to(file, number);
        }
        let last = writing.old.last().copied().unwrap_or_default();
        Ok(Batch { rows: std::mem::take(&mut writing.rows), last })
    }

    /// Makes the first free segment behind another.
    fn new_segment(&self, after: u64) -> io::Result<(Arc<File>, u64)> {
        let mut number = after + 1;
        let file = loop {
            match segment::create(&segment_file(&self.folder, &self.node, number)) {
                Ok(file) => break file,
                // Left by an attempt that failed halfway.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        sync_folder(&self.folder)?;
        Ok((Arc::new(file), number))
    }

    /// The rows are in SQLite: forgets them and their segments. Blocks.
    pub(crate) fn forget(&self, batch: &Batch) {
        let mut writing = self.writing();
        let mut bytes = 0;
        for row in &batch.rows {
            bytes += row.record.len();
            if writing.latest.get(&row.id).is_some_and(|latest| Arc::ptr_eq(latest, row)) {
                writing.latest.remove(&row.id);
            }
        }
        // The frames are longer than the records: an empty journal is the moment to count anew.
        writing.bytes = if writing.rows.is_empty() { 0 } else { writing.bytes.saturating_sub(bytes) };
        let (moved, old) = std::mem::take(&mut writing.old).into_iter().partition(|at| *at <= batch.last);
        writing.old = old;
        drop(writing);
        let moved: Vec<u64> = moved;
        for number in moved {
            let _ = std::fs::remove_file(segment_file(&self.folder, &self.node, number));
        }
        self.folded.notify_waiters();
    }

    /// The rows could not be moved: they wait again.
    pub(crate) fn put_back(&self, batch: Batch) {
        let mut writing = self.writing();
        let later = std::mem::replace(&mut writing.rows, batch.rows);
        writing.rows.extend(later);
    }

    /// Takes nothing any more.
    pub(crate) fn close(&self) {
        self.writing().closed = true;
    }

    /// Leaves nothing behind. Call it when it is closed and everything is folded.
    pub(crate) fn remove(&self) {
        let writing = self.writing();
        if writing.rows.is_empty() && writing.old.is_empty() {
            let _ = std::fs::remove_file(segment_file(&self.folder, &self.node, writing.segment));
            let _ = std::fs::remove_file(node_file(&self.folder, &self.node));
        }
    }
}

fn broken(error: io::Error) -> StoreError {
    StoreError::unavailable("write the call journal", error)
}

/// Returns the file whose lock says that a process lives.
pub(crate) fn node_file(folder: &Path, node: &str) -> PathBuf {
    folder.join(format!("{node}.node"))
}

/// Returns the file of a segment.
fn segment_file(folder: &Path, node: &str, number: u64) -> PathBuf {
    folder.join(format!("{node}.{number:010}.log"))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
