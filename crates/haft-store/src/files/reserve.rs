//! Space that is reserved on the disk of the home folder, so that a server starts even if the disk is full.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

/// The name of the file in the home folder.
const FILE: &str = ".reserve";
/// Enough for the files that SQLite and the journal need at a start.
const RESERVED_BYTES: u64 = 1024 * 1024;

/// The reserved space.
#[derive(Debug, Clone)]
pub(crate) struct Reserve {
    home: PathBuf,
}

impl Reserve {
    pub(crate) fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Reserves the space, or releases it if the disk is full; returns whether it is reserved. Blocks.
    pub(crate) fn prepare(&self) -> bool {
        if !self.is_reserved() {
            return self.ensure().is_ok();
        }
        let free = statvfs(&self.home).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        if free >= RESERVED_BYTES {
            return true;
        }
        tracing::warn!(home = %self.home.display(), free, "the disk is full: calls are rejected until there is room");
        let _ = std::fs::remove_file(self.path());
        false
    }

    /// Reserves the space unless it is. Blocks.
    pub(crate) fn ensure(&self) -> io::Result<()> {
        if self.is_reserved() {
            return Ok(());
        }
        allocate(&self.path()).inspect_err(|_| drop(std::fs::remove_file(self.path())))
    }

    fn is_reserved(&self) -> bool {
        self.path().metadata().is_ok_and(|file| file.len() >= RESERVED_BYTES)
    }

    fn path(&self) -> PathBuf {
        self.home.join(FILE)
    }
}

fn allocate(path: &Path) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, RESERVED_BYTES) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = [0; 4096];
            (0..RESERVED_BYTES / 4096).try_for_each(|_| file.write_all(&zeros))
        }
        other => Ok(other?),
    }
}
