//! The end of the journal: the segment that is written, and the ones behind it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use super::record::Row;
use super::segment;
use crate::files::write::sync_folder;

/// A segment that came to less than this was not in a hurry: the next one gets no room.
const LEAST_ROOM: u64 = 64 * 1024;
/// The most room that is made in a segment before it is needed.
const MAX_ROOM: u64 = 8 * 1024 * 1024;

/// More than a usual record, so that a success means something.
const PROBE: usize = 16 * 1024;

/// When a record counts as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// Once the operating system has it: it outlives this process.
    System,
    /// Once the disk has it: it outlives a loss of power.
    Disk,
}

/// Where segments are made.
#[derive(Debug, Clone)]
pub(crate) struct Segments {
    folder: PathBuf,
    node: String,
}

impl Segments {
    pub(crate) fn new(folder: &Path, node: &str) -> Self {
        Self { folder: folder.to_owned(), node: node.to_owned() }
    }

    /// Returns the file of a segment.
    pub(crate) fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{}.{number:010}.log", self.node))
    }

    /// Makes the first free segment behind another.
    pub(crate) fn make(&self, after: u64, room: u64) -> io::Result<(File, u64)> {
        let mut number = after + 1;
        let file = loop {
            match segment::create(&self.path(number), room) {
                Ok(file) => break file,
                // Left by an attempt that failed halfway.
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
    durability: Durability,
    pub(super) file: File,
    length: u64,
    pub(crate) segment: u64,
    /// Something stands in the segment that may hide what would follow it.
    torn: bool,
    /// Nothing is taken any more.
    pub(crate) closed: bool,
    /// Segments whose rows are not in SQLite yet, besides the one that is written.
    pub(crate) old: Vec<u64>,
    /// Kept for its memory.
    frames: Vec<u8>,
}

impl Tail {
    /// Starts the first segment.
    pub(crate) fn start(segments: Segments, durability: Durability) -> io::Result<Self> {
        let (file, segment) = segments.make(0, 0)?;
        Ok(Self {
            segments,
            durability,
            file,
            length: 0,
            segment,
            torn: false,
            closed: false,
            old: Vec::new(),
            frames: Vec::new(),
        })
    }

    /// Appends rows in one write; they are durable when this returns, or none of them counts.
    pub(crate) fn append(&mut self, rows: &[Row]) -> io::Result<()> {
        self.frames.clear();
        rows.iter().try_for_each(|row| segment::frame(&row.record, &mut self.frames))?;
        self.write()?;
        self.length += self.frames.len() as u64;
        Ok(())
    }

    /// Tries a write at the very place of the next record. What it leaves reads as room.
    pub(crate) fn probe(&mut self) -> io::Result<()> {
        self.frames.clear();
        self.frames.resize(PROBE, 0);
        self.write()
    }

    /// Writes the frames behind the records that count.
    fn write(&mut self) -> io::Result<()> {
        if self.closed {
            return Err(io::Error::other("the store is closed"));
        }
        if self.torn {
            let (file, number) = self.segments.make(self.segment, 0)?;
            self.turn_to(file, number);
        }
        if let Err(error) = self.file.write_all_at(&self.frames, self.length) {
            // What was written in part must not hide the records that follow.
            self.torn = self.file.set_len(self.length).is_err();
            return Err(error);
        }
        if self.durability == Durability::Disk
            && let Err(error) = self.file.sync_data()
        {
            // Nobody knows what the file holds now.
            self.torn = true;
            return Err(error);
        }
        Ok(())
    }

    /// Goes on in another segment.
    pub(crate) fn turn_to(&mut self, file: File, number: u64) {
        self.old.push(self.segment);
        self.segment = number;
        self.file = file;
        self.length = 0;
        self.torn = false;
    }

    /// Returns how much room the next segment wants: as much as this one needed, if many wait for the disk.
    pub(crate) fn room(&self) -> u64 {
        match self.durability {
            Durability::Disk if self.length >= LEAST_ROOM => self.length.min(MAX_ROOM),
            Durability::Disk | Durability::System => 0,
        }
    }
}
