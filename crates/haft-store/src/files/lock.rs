//! Locks between processes, held on files.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The lock, held until it is dropped. The file stays: removing it would let two processes hold "the" lock.
#[derive(Debug)]
pub(crate) struct HomeLock {
    _file: File,
}

/// Waits for the lock that processes on the same home folder take before they write. Blocks the thread.
pub(crate) fn acquire(path: &Path) -> io::Result<HomeLock> {
    Ok(HomeLock { _file: hold(path)? })
}

/// Makes a file and waits for its lock. Blocks the thread.
pub(crate) fn hold(path: &Path) -> io::Result<File> {
    loop {
        // Someone may have removed the folder as a whole.
        path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        // Whoever may read a file may also lock it.
        let file = File::options().create(true).truncate(false).write(true).mode(0o600).open(path)?;
        file.lock()?;
        if is_at(&file, path)? {
            return Ok(file);
        }
    }
}

/// Tells whether an open file is still the one at a path. A lock on a file that was removed meanwhile keeps
/// nobody away.
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
    fn a_lock_on_a_removed_file_is_taken_anew() {
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
