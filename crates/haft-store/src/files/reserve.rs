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

/// The minimum reservation, and the granularity of partial ones.
const MIN_RESERVED_BYTES: u64 = 32 * 1024;

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
        let is_partial = !self.is_reserved();
        if is_partial && self.ensure().is_ok() {
            return true;
        }
        let free = statvfs(&self.home).map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        if free >= RESERVED_BYTES && !is_partial {
            return true;
        }
        tracing::warn!(home = %self.home.display(), free, "the disk is full: calls are rejected until there is room");
        let _ = std::fs::remove_file(self.path());
        false
    }

    /// Reserves the space unless it is reserved; on failure, a partial reservation is kept. Blocks.
    pub(crate) fn ensure(&self) -> io::Result<()> {
        if self.is_reserved() {
            return Ok(());
        }
        allocate(&self.path(), RESERVED_BYTES)
    }

    /// Reserves as much space as is free, unless all is reserved, so that the space that a start on a full disk did not use
    /// remains for the next one. Blocks.
    pub(crate) fn reserve_remaining(&self) {
        if self.is_reserved() {
            return;
        }
        let mut bytes = RESERVED_BYTES;
        while bytes >= MIN_RESERVED_BYTES && allocate(&self.path(), bytes).is_err() {
            bytes -= MIN_RESERVED_BYTES;
        }
    }

    fn is_reserved(&self) -> bool {
        self.path().metadata().is_ok_and(|file| file.len() >= RESERVED_BYTES)
    }

    fn path(&self) -> PathBuf {
        self.home.join(FILE)
    }
}

fn allocate(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    match fallocate(&file, FallocateFlags::empty(), 0, bytes) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = [0; 4096];
            (0..bytes / 4096).try_for_each(|_| file.write_all(&zeros))
        }
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_is_what_fits() {
        let home = tempfile::tempdir().unwrap();
        let reserve = Reserve::new(home.path());
        reserve.reserve_remaining();
        assert!(reserve.is_reserved());
        // A partial reservation does not count: the next start tries to reserve all of it.
        File::options().write(true).open(reserve.path()).unwrap().set_len(64 * 1024).unwrap();
        assert!(!reserve.is_reserved());
        assert!(reserve.prepare() && reserve.is_reserved());
    }
}
