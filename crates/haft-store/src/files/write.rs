//! Writing definition files so that a reader sees the old file or the new one, never a part.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use uuid::Uuid;

/// Every temporary file ends with this, and starts with a dot.
pub(crate) const TEMPORARY: &str = ".haft-tmp";

/// Whether a file that is there already may be replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Existing {
    Replace,
    Refuse,
}

/// Who may read and write a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As new files are: everybody may read it, unless the process forbids that.
    New,
    /// Only its owner.
    Private,
    /// As the file that it takes the place of.
    Like(u32),
}

impl Mode {
    /// Returns the mode of a file that is there.
    pub(crate) fn of(metadata: &fs::Metadata) -> Self {
        Mode::Like(metadata.permissions().mode() & 0o7777)
    }
}

/// How to put files back as they were. Dropping it does so, unless [`Undo::forget`] was called.
#[derive(Debug, Default)]
pub(crate) struct Undo {
    steps: Vec<Step>,
}

#[derive(Debug)]
enum Step {
    Remove(PathBuf),
    Restore(PathBuf, Vec<u8>, Mode),
    Move(PathBuf, PathBuf),
}

impl Undo {
    /// Undoes the making of a file.
    pub(crate) fn remove(path: PathBuf) -> Self {
        Self { steps: vec![Step::Remove(path)] }
    }

    /// Undoes the replacement or removal of a file.
    pub(crate) fn restore(path: PathBuf, content: Vec<u8>, mode: Mode) -> Self {
        Self { steps: vec![Step::Restore(path, content, mode)] }
    }

    /// Undoes the moving of a file from one place to another.
    pub(crate) fn moved(from: PathBuf, to: PathBuf) -> Self {
        Self { steps: vec![Step::Move(to, from)] }
    }

    /// Adds later steps.
    pub(crate) fn append(&mut self, mut later: Undo) {
        self.steps.append(&mut later.steps);
    }

    /// The change stands.
    pub(crate) fn forget(&mut self) {
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
                    // What was never replaced needs no writing, which the fault at hand may forbid.
                    let is_there = fs::read(&path).is_ok_and(|now| now == content);
                    let result =
                        if is_there { Ok(()) } else { write(&path, &content, Existing::Replace, mode) };
                    (path, result)
                }
                Step::Move(from, to) => {
                    let result = move_new(&from, &to);
                    (to, result)
                }
            };
            if let Err(error) = result {
                tracing::error!(path = %path.display(), %error, "could not put the file back as it was");
            }
        }
    }
}

/// Writes a whole file: temporary file, fsync, rename, fsync of the folder.
pub(crate) fn write(path: &Path, content: &[u8], existing: Existing, mode: Mode) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::other("the path has no folder"))?;
    let temporary = folder.join(format!(".{}{TEMPORARY}", Uuid::now_v7().simple()));
    let result = fill(&temporary, content, mode).and_then(|()| match existing {
        Existing::Replace => fs::rename(&temporary, path),
        Existing::Refuse => rename_new(&temporary, path),
    });
    if let Err(error) = result {
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    sync_folder(folder)
}

/// Removes a file or an empty folder for good; one that is gone already is fine.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    // A folder goes only when it is empty.
    let result =
        if path.is_dir() && !path.is_symlink() { fs::remove_dir(path) } else { fs::remove_file(path) };
    match result {
        Ok(()) => path.parent().map_or(Ok(()), sync_folder),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Makes what happened in a folder outlive a loss of power.
pub(crate) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Moves whatever is at a path, unseen, to a place where nothing is.
pub(crate) fn move_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_new(from, to)?;
    to.parent().map_or(Ok(()), sync_folder)?;
    from.parent().map_or(Ok(()), sync_folder)
}

fn fill(path: &Path, content: &[u8], mode: Mode) -> io::Result<()> {
    let first = if mode == Mode::New { 0o644 } else { 0o600 };
    let mut file = File::options().write(true).create_new(true).mode(first).open(path)?;
    if let Mode::Like(mode) = mode {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(content)?;
    file.sync_all()
}

fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Ok(()) => Ok(()),
        // A file system that cannot refuse by itself: the lock between processes has to do.
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
    fn what_was_never_replaced_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "one").unwrap();
        let before = fs::metadata(&path).unwrap().ino();
        drop(Undo::restore(path.clone(), b"one".to_vec(), Mode::New));
        assert_eq!(fs::metadata(&path).unwrap().ino(), before);
        fs::write(&path, "two").unwrap();
        drop(Undo::restore(path.clone(), b"one".to_vec(), Mode::New));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }
}
