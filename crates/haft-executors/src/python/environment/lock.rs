//! The lock of an environment, which also holds between processes. The system releases it when its process ends.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::key::EnvironmentKey;

/// A lock that is held until it is dropped.
#[derive(Debug)]
#[must_use = "the lock is released as soon as this is dropped"]
pub(super) struct EnvironmentLock {
    _file: File,
    path: PathBuf,
}

impl EnvironmentLock {
    /// Tries to lock an environment; `None` if another process or task holds the lock.
    pub(super) fn try_acquire(root: &Path, key: &EnvironmentKey) -> io::Result<Option<Self>> {
        let path = root.join(format!("{key}.lock"));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The file may have been removed and created again in between; then this lock means nothing.
        let same = std::fs::metadata(&path).is_ok_and(|named| {
            file.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (named.dev(), named.ino()))
        });
        Ok(same.then_some(Self { _file: file, path }))
    }

    /// Removes the file of the lock, for an environment that was removed.
    pub(super) fn remove(self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(%error, "failed to remove a lock file");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_the_lock() {
        let root = tempfile::tempdir().unwrap();
        let key = EnvironmentKey::parse(&"a".repeat(40)).unwrap();
        let other = EnvironmentKey::parse(&"b".repeat(40)).unwrap();
        let acquire = |key| EnvironmentLock::try_acquire(root.path(), key).unwrap();
        let first = acquire(&key).unwrap();
        assert!(acquire(&key).is_none());
        assert!(acquire(&other).is_some());
        first.remove();
        let second = acquire(&key).unwrap();
        assert!(acquire(&key).is_none());
        drop(second);
        assert!(acquire(&key).is_some());
    }
}
