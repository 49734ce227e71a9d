//! File locks between processes.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// A lock that is released when it is dropped. The file stays: if it were removed, two processes could hold the lock.
#[derive(Debug)]
pub(crate) struct HomeLock {
    _file: File,
}

/// Acquires the write lock of the home folder. Blocks the thread.
pub(crate) fn acquire(path: &Path) -> io::Result<HomeLock> {
    Ok(HomeLock { _file: hold(path)? })
}

/// Creates a file and acquires its lock. Blocks the thread.
pub(crate) fn hold(path: &Path) -> io::Result<File> {
    loop {
        // The whole folder may have been removed.
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        // Private, because everyone who can read a file can lock it.
        let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        file.lock()?;
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Tells whether an open file is still the one at a path. A lock on a removed file has no effect.
pub(crate) fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_on_a_removed_file_is_acquired_again() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        let first = hold(&path).unwrap();
        let (start, started) = std::sync::mpsc::channel();
        let theirs = path.clone();
        let waiting = std::thread::spawn(move || {
            // Opened before it is removed, locked after.
            let stale = File::options().write(true).open(&theirs).unwrap();
            start.send(()).unwrap();
            (stale, hold(&theirs).unwrap())
        });
        started.recv().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(20));
        std::fs::remove_file(&path).unwrap();
        drop(first);
        let (stale, held) = waiting.join().unwrap();
        assert!(!is_at(&stale, &path).unwrap());
        assert!(is_at(&held, &path).unwrap());
    }
}
