//! The lock that processes on the same home folder take before they write.

use std::fs::File;
use std::path::Path;

/// The lock, held until it is dropped. The file stays: removing it would let two processes hold "the" lock.
#[derive(Debug)]
pub(crate) struct HomeLock {
    _file: File,
}

/// Waits for the lock. Blocks the thread.
pub(crate) fn acquire(path: &Path) -> std::io::Result<HomeLock> {
    let file = File::options().create(true).truncate(false).write(true).open(path)?;
    file.lock()?;
    Ok(HomeLock { _file: file })
}
