//! Opening beneath a root, by handle.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, mkdirat, openat2};
use rustix::io::Errno;

use super::error::FileError;

/// How often a lookup is repeated that a rename or a mount has disturbed.
const LOOKUPS: usize = 32;

/// The most bytes of one name, on the file systems that there are.
const MAX_NAME: usize = 255;

/// Looks a path up from a folder, never above it, and never through the links of `/proc`.
pub(super) fn open(folder: BorrowedFd<'_>, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut last = Errno::AGAIN;
    for _ in 0..LOOKUPS {
        match openat2(folder, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            Err(errno @ (Errno::AGAIN | Errno::INTR)) => last = errno,
            done => return done,
        }
    }
    Err(last)
}

/// Opens a regular file to read.
pub(super) fn open_file(root: BorrowedFd<'_>, path: &str) -> Result<(File, Stat), FileError> {
    check_path(path)?;
    let failed = |errno| FileError::of(path, errno);
    // A look first: opening a device or a pipe could already do something.
    let found = open(root, path, OFlags::PATH).map_err(failed)?;
    regular(path, &fstat(&found).map_err(failed)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = open(root, path, flags).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    regular(path, &stat)?;
    Ok((File::from(file), stat))
}

/// Refuses everything but a regular file.
pub(super) fn regular(path: &str, stat: &Stat) -> Result<(), FileError> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(FileError::unfit(path, "not_a_file", "is a folder")),
        FileType::Symlink => {
            Err(FileError::escapes(path, "is a symbolic link, which is not written through"))
        }
        _ => Err(FileError::unfit(path, "not_a_file", "is no regular file")),
    }
}

/// Opens the folder of a file that is to be written; returns it and the name of the file in it.
pub(super) fn open_parent<'p>(
    root: BorrowedFd<'_>,
    path: &'p str,
    mkdir: bool,
) -> Result<(OwnedFd, &'p str), FileError> {
    check_path(path)?;
    let (parent, name) = path.rsplit_once('/').unwrap_or((".", path));
    match name {
        "" | "." => return Err(FileError::unfit(path, "invalid_path", "names a folder, not a file")),
        ".." => return Err(FileError::escapes(path, "ends with `..`")),
        _ => {}
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY;
    match open(root, parent, flags) {
        Err(Errno::NOENT) if mkdir => make_folders(root, path, parent).map(|folder| (folder, name)),
        Err(Errno::NOENT) => Err(FileError::unfit(
            path,
            "not_found",
            "is in a folder that does not exist; `mkdir: true` makes it",
        )),
        other => other.map(|folder| (folder, name)).map_err(|errno| FileError::of(path, errno)),
    }
}

/// Makes what is missing, one folder after the other, each beneath the root.
fn make_folders(root: BorrowedFd<'_>, path: &str, parent: &str) -> Result<OwnedFd, FileError> {
    let failed = |errno| FileError::of(path, errno);
    let names = || parent.split('/').filter(|name| !name.is_empty() && *name != ".");
    // Before any is made: what is refused leaves nothing behind.
    if names().any(|name| name == "..") {
        return Err(FileError::escapes(path, "has `..` among folders that are still to be made"));
    }
    if path.split('/').any(|name| name.len() > MAX_NAME) {
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

/// Refuses what is no relative path, with words that fit; the kernel decides about all others.
pub(super) fn check_path(path: &str) -> Result<(), FileError> {
    if path.is_empty() {
        return Err(FileError::Empty);
    }
    if path.contains('\0') {
        return Err(FileError::unfit(path, "invalid_path", "contains a NUL character"));
    }
    if path.starts_with('/') {
        return Err(FileError::escapes(path, "is an absolute path; name it relative to the sandbox"));
    }
    Ok(())
}
