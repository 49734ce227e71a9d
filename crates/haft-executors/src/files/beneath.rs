//! Opens files beneath a root by handle.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, mkdirat, openat2};
use rustix::io::Errno;

use super::error::FileError;

/// How often a lookup is retried after a concurrent rename or mount.
const MAX_LOOKUPS: usize = 32;

/// The maximum length of a file name in bytes.
const MAX_NAME_BYTES: usize = 255;

/// Opens a path beneath a folder, never above it and never through magic links of `/proc`.
pub(super) fn open(folder: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut last = Errno::AGAIN;
    for _ in 0..MAX_LOOKUPS {
        match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
            done => return done,
        }
    }
    Err(last)
}

/// Opens a regular file for reading.
pub(super) fn open_file(root: BorrowedFd<'_>, path: &str) -> Result<(File, Stat), FileError> {
    check_path(path)?;
    let failed = |errno| FileError::of(path, errno);
    // Checked first: opening a device or a pipe could already have an effect.
    let found = open(root, path, OFlags::PATH).map_err(failed)?;
    require_regular(path, &fstat(&found).map_err(failed)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(root, path, flags).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    require_regular(path, &stat)?;
    Ok((File::from(file), stat))
}

/// Rejects everything but a regular file.
pub(super) fn require_regular(path: &str, stat: &Stat) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::unusable(path, "not_a_file", "is a folder")),
        FileType::Symlink => Err(FileError::escapes(path, "is a symbolic link; writes do not follow links")),
        _ => Err(FileError::unusable(path, "not_a_file", "is not a regular file")),
    }
}

/// Opens the parent folder of a file to write; returns it and the file name.
pub(super) fn open_parent<'p>(
    root: BorrowedFd<'_>,
    path: &'p str,
    mkdir: bool,
) -> Result<(OwnedFd, &'p str), FileError> {
    check_path(path)?;
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    match name {
        "" | "." => return Err(FileError::unusable(path, "invalid_path", "is a folder, not a file")),
        ".." => return Err(FileError::escapes(path, "ends with `..`")),
        _ => {}
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match open(root, parent, flags) {
        Err(Errno::NOENT) if mkdir => create_folders(root, path, parent).map(|folder| (folder, name)),
        Err(Errno::NOENT) => Err(FileError::unusable(
            path,
            "not_found",
            "is in a folder that does not exist; set `mkdir: true` to create it",
        )),
        other => other.map(|folder| (folder, name)).map_err(|errno| FileError::of(path, errno)),
    }
}

/// Creates the missing folders one by one, each beneath the root.
fn create_folders(root: BorrowedFd<'_>, path: &str, parent: &str) -> Result<OwnedFd, FileError> {
    let failed = |errno| FileError::of(path, errno);
    let names = || parent.split('/').filter(|name| !name.is_empty() && *name != ".");
    // Checked before any folder is created, so that a rejected path leaves nothing behind.
    if names().any(|name| name == "..") {
        return Err(FileError::escapes(path, "has `..` below a folder that does not exist"));
    }
    if path.split('/').any(|name| name.len() > MAX_NAME_BYTES) {
        return Err(failed(Errno::NAMETOOLONG));
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    let mut folder = open(root, ".", flags).map_err(failed)?;
    let mut prefix = String::new();
    for name in names() {
        if !prefix.is_empty() {
            prefix.push('/');
        }
        prefix.push_str(name);
        folder = match open(root, &prefix, flags) {
            Err(Errno::NOENT) => {
                match mkdirat(folder.as_fd(), name, Mode::from_raw_mode(0o755)) {
                    Ok(()) | Err(Errno::EXIST) => {}
                    Err(errno) => return Err(failed(errno)),
                }
                open(root, &prefix, flags).map_err(failed)?
            }
            other => other.map_err(failed)?,
        };
    }
    Ok(folder)
}

/// Rejects paths that are not relative with a specific message; the kernel checks all others.
pub(super) fn check_path(path: &str) -> Result<(), FileError> {
    if path.is_empty() {
        return Err(FileError::Empty);
    }
    if path.contains('\0') {
        return Err(FileError::unusable(path, "invalid_path", "contains a NUL character"));
    }
    if path.starts_with('/') {
        return Err(FileError::escapes(path, "is an absolute path; use a path relative to the sandbox"));
    }
    Ok(())
}
