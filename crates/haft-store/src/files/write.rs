//! Atomic writes: a reader sees the old file or the new one, never a part.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use uuid::Uuid;

/// The suffix of temporary files, whose names start with a dot.
pub(crate) const TEMP_SUFFIX: &str = ".haft-tmp";

/// What to do if the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfExists {
    Replace,
    Fail,
}

/// The permissions of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileMode {
    /// The default of new files: everyone may read them, subject to the umask.
    New,
    /// Only the owner may read and write it.
    Private,
    /// The permissions of the file that it replaces.
    Like(u32),
}

impl FileMode {
    /// Returns the permissions of an existing file.
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        FileMode::Like(metadata.permissions().mode() & 0o7777)
    }
}

/// Steps that restore files. They run on drop, unless [`Undo::disarm`] was called.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Remove(PathBuf),
    Restore(PathBuf, Vec<u8>, FileMode),
    Move(PathBuf, PathBuf),
}

impl Undo {
    /// Undoes the creation of a file.
    pub(crate) fn remove(path: PathBuf) -> Self {
        Self { steps: vec![Step::Remove(path)] }
    }

    /// Undoes the replacement or removal of a file.
    pub(crate) fn restore(path: PathBuf, content: Vec<u8>, mode: FileMode) -> Self {
        Self { steps: vec![Step::Restore(path, content, mode)] }
    }

    /// Undoes a move.
    pub(crate) fn moved(from: PathBuf, to: PathBuf) -> Self {
        Self { steps: vec![Step::Move(to, from)] }
    }

    /// Adds later steps.
    pub(crate) fn append(&mut self, mut later: Undo) {
        self.steps.append(&mut later.steps);
    }

    /// Keeps the changes.
    pub(crate) fn disarm(&mut self) {
        self.steps.clear();
    }
}

impl Drop for Undo {
    fn drop(&mut self) {
        for step in std::mem::take(&mut self.steps).into_iter().rev() {
            let (path, result) = match step {
                Step::Remove(path) => {
                    let result = remove(&path);
                    (path, result)
                }
                Step::Restore(path, content, mode) => {
                    // A file that was not replaced is left alone: the disk may be full.
                    let is_there = fs::read(&path).is_ok_and(|now| now == content);
                    let result =
                        if is_there { Ok(()) } else { write(&path, &content, IfExists::Replace, mode) };
                    (path, result)
                }
                Step::Move(from, to) => {
                    let result = rename_to_new(&from, &to);
                    (to, result)
                }
            };
            if let Err(error) = result {
                tracing::error!(path = %path.display(), %error, "cannot restore the file");
            }
        }
    }
}

/// Writes a whole file: temporary file, fsync, rename, fsync of the folder.
pub(crate) fn write(path: &Path, content: &[u8], existing: IfExists, mode: FileMode) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no parent folder"))?;
    let temporary = folder.join(format!(".{}{TEMP_SUFFIX}", Uuid::now_v7().simple()));
    let result = fill(&temporary, content, mode).and_then(|()| match existing {
        IfExists::Replace => fs::rename(&temporary, path),
        IfExists::Fail => rename_new(&temporary, path),
    });
    if let Err(error) = result {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(folder)
}

/// Removes a file or an empty folder; a missing one is not an error.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    let result =
        if path.is_dir() && !path.is_symlink() { fs::remove_dir(path) } else { fs::remove_file(path) };
    match result {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes changes in a folder survive a power failure.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Moves a file or folder to a path that must not exist.
pub(crate) fn rename_to_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_new(from, to)?;
    to.parent().map_or(Ok(()), sync_folder)?;
    from.parent().map_or(Ok(()), sync_folder)
}

fn fill(path: &Path, content: &[u8], mode: FileMode) -> io::Result<()> {
    let first = if mode == FileMode::New { 0o644 } else { 0o600 };
    let mut file = File::options().write(true).create_new(true).mode(first).open(path)?;
    if let FileMode::Like(mode) = mode {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(content)?;
    file.sync_all()
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // The file system does not support it: the lock between processes has to suffice.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {
            if fs::symlink_metadata(to).is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn undo_does_not_rewrite_an_unchanged_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        drop(Undo::restore(path.clone(), b"one".to_vec(), FileMode::New));
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
        fs::write(&path, "two").unwrap();
        drop(Undo::restore(path.clone(), b"one".to_vec(), FileMode::New));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }
}
