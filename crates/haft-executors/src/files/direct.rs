//! Changes of files by a person, without a tool: the same rules as for `write_file`.

use std::os::fd::AsFd as _;
use std::path::Path;

use haft_core::outcome::CallError;
use rustix::fs::{AtFlags, FileType, Mode, statat, unlinkat};
use rustix::io::Errno;

use super::beneath;
use super::error::FileError;
use super::roots::{Root, WORKSPACE};
use super::write::{NEW_FILE_MODE, replace};

/// Writes a file of a folder, with the folders above it; blocks. Returns whether it is new.
pub fn write(folder: &Path, path: &str, bytes: &[u8]) -> Result<bool, CallError> {
    write_in(folder, path, bytes).map_err(CallError::from)
}

/// Removes a file of a folder, or a folder that is empty; blocks.
pub fn remove(folder: &Path, path: &str) -> Result<(), CallError> {
    remove_in(folder, path).map_err(CallError::from)
}

fn write_in(folder: &Path, path: &str, bytes: &[u8]) -> Result<bool, FileError> {
    let root = Root::new(WORKSPACE, folder.to_owned()).open()?;
    let (parent, name) = beneath::open_parent(root.as_fd(), path, true)?;
    let failed = |errno| FileError::of(path, errno);
    let old = match statat(parent.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => {
            beneath::require_regular(path, &stat)?;
            Some(stat.st_mode & 0o777)
        }
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(failed(errno)),
    };
    let mode = Mode::from_raw_mode(old.unwrap_or(NEW_FILE_MODE));
    replace(parent.as_fd(), name, bytes, mode).map_err(failed)?;
    Ok(old.is_none())
}

fn remove_in(folder: &Path, path: &str) -> Result<(), FileError> {
    let root = Root::new(WORKSPACE, folder.to_owned()).open()?;
    let (parent, name) = beneath::open_parent(root.as_fd(), path, false)?;
    let failed = |errno| FileError::of(path, errno);
    let stat = statat(parent.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
    let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    match unlinkat(parent.as_fd(), name, flags) {
        Err(Errno::NOTEMPTY | Errno::EXIST) => {
            Err(FileError::unusable(path, "not_empty", "is a folder with files; delete these first"))
        }
        done => done.map_err(failed),
    }
}
