//! The end of the journal: the segment being written, and the older ones that SQLite does not have yet.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::record::CallRow;
use super::segment;
use crate::files::write::sync_folder;
use crate::settings::LedgerSync;

/// After a segment smaller than this, the next one is not preallocated.
const MIN_PREALLOCATION: u64 = 64 * 1024;
/// The largest preallocation of a segment.
const MAX_PREALLOCATION: u64 = 8 * 1024 * 1024;
/// The size of a probe: larger than a usual record, so that a success is meaningful.
const PROBE_BYTES: usize = 16 * 1024;

/// Creates and removes the segments of one process.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    folder: PathBuf,
    node: String,
}

impl Segments {
    pub(crate) fn new(folder: &Path, node: &str) -> Self {
        Self { folder: folder.to_owned(), node: node.to_owned() }
    }

    /// Returns the path of a segment.
    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}.{number:010}.log", self.node))
    }

    /// Creates the segment with the first free number after another.
    pub(crate) fn create(&self, after: u64, preallocation: u64) -> io::Result<(File, u64)> {
        let mut number = after + 1;
        let file = loop {
            match segment::create(&self.path(number), preallocation) {
                Ok(file) => break file,
                // Left behind by an attempt that failed halfway.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        };
        sync_folder(&self.folder)?;
        Ok((file, number))
    }

    /// Removes a segment.
    pub(crate) fn remove(&self, number: u64) {
        let _ = std::fs::remove_file(self.path(number));
    }
}

/// The end of the journal.
pub(crate) struct Tail {
    pub(crate) segments: Segments,
    sync: LedgerSync,
    pub(super) file: File,
    length: u64,
    pub(crate) segment: u64,
    /// The segment may end in a partial record, which would hide later ones.
    torn: bool,
    /// All further records are rejected.
    pub(crate) closed: bool,
    /// Earlier segments whose rows are not in SQLite yet.
    pub(crate) old: Vec<u64>,
    /// The buffer of a write; reused to save allocations.
    frames: Vec<u8>,
}

impl Tail {
    /// Starts the first segment.
    pub(crate) fn start(segments: Segments, sync: LedgerSync) -> io::Result<Self> {
        let (file, segment) = segments.create(0, 0)?;
        Ok(Self {
            segments,
            sync,
            file,
            length: 0,
            segment,
            torn: false,
            closed: false,
            old: Vec::new(),
            frames: Vec::new(),
        })
    }

    /// Appends rows in one write; on success all are durable, on failure none is.
    pub(crate) fn append(&mut self, rows: &[CallRow]) -> io::Result<()> {
        self.frames.clear();
        rows.iter().try_for_each(|row| segment::append_frame(&row.record, &mut self.frames))?;
        self.write(self.sync.waits_for(rows))?;
        self.length += self.frames.len() as u64;
        Ok(())
    }

    /// Attempts a write of zeros where the next record will be; readers treat zeros as unused space.
    pub(crate) fn probe(&mut self) -> io::Result<()> {
        self.frames.clear();
        self.frames.resize(PROBE_BYTES, 0);
        self.write(self.sync != LedgerSync::Os)
    }

    /// Writes the frames after the last complete record, and waits for the disk if asked to.
    fn write(&mut self, wait: bool) -> io::Result<()> {
        if self.closed {
            return Err(io::Error::other("the store is closed"));
        }
        if self.torn {
            let (file, number) = self.segments.create(self.segment, 0)?;
            self.switch_to(file, number);
        }
        if let Err(error) = self.file.write_all_at(&self.frames, self.length) {
            // A partial record must not hide the records that follow.
            self.torn = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        if wait && let Err(error) = self.file.sync_data() {
            // The content of the file is unknown now.
            self.torn = true;
            return Err(error);
        }
        Ok(())
    }

    /// Continues in another segment.
    pub(crate) fn switch_to(&mut self, file: File, number: u64) {
        self.old.push(self.segment);
        self.segment = number;
        self.file = file;
        self.length = 0;
        self.torn = false;
    }

    /// Returns the preallocation of the next segment: the size of this one, if writes wait for the disk.
    pub(crate) fn preallocation(&self) -> u64 {
        match self.sync {
            LedgerSync::Always if self.length >= MIN_PREALLOCATION => self.length.min(MAX_PREALLOCATION),
            LedgerSync::Always | LedgerSync::Auto | LedgerSync::Os => 0,
        }
    }
}
