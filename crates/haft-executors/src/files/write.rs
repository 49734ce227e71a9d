//! Writes a file atomically.

use std::borrow::Cow;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use haft_core::implementation::Encoding;
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fsync, openat, renameat, statat, unlinkat};
use rustix::io::Errno;
use serde_json::{Value, json};
use uuid::Uuid;

use super::beneath;
use super::error::FileError;
use super::roots::Root;

/// The default permissions of a new file.
pub(super) const NEW_FILE_MODE: u32 = 0o644;

/// The name of a temporary file is 32 hexadecimal digits between these.
const TEMPORARY_PREFIX: &str = ".haft-";
const TEMPORARY_SUFFIX: &str = ".tmp";

/// Returns whether a file is the unfinished result of a write.
pub(super) fn is_temporary(name: &str) -> bool {
    let digits = name.strip_prefix(TEMPORARY_PREFIX).and_then(|rest| rest.strip_suffix(TEMPORARY_SUFFIX));
    digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// A write operation.
#[derive(Debug, Clone)]
pub(super) struct FileWrite {
    pub(super) root: Root,
    pub(super) encoding: Encoding,
    pub(super) mode: Option<u32>,
    pub(super) mkdir: bool,
    /// The maximum size of the file.
    pub(super) max_bytes: u64,
}

impl FileWrite {
    /// Writes the file; blocks.
    pub(super) fn run(&self, path: &str, content: &str) -> Result<Value, FileError> {
        if self.root.read_only {
            return Err(FileError::ReadOnly(self.root.name.clone()));
        }
        let bytes = self.bytes(content)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > self.max_bytes {
            let message = format!(
                "would have {size} bytes, which exceeds `limits.max_request_bytes` ({})",
                self.max_bytes
            );
            return Err(FileError::unusable(path, "too_large", message));
        }
        let root = self.root.open()?;
        let (folder, name) = beneath::open_parent(root.as_fd(), path, self.mkdir)?;
        let failed = |errno| FileError::of(path, errno);
        let old = match statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                beneath::require_regular(path, &stat)?;
                Some(stat.st_mode & 0o777)
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(failed(errno)),
        };
        let mode = Mode::from_raw_mode(self.mode.or(old).unwrap_or(NEW_FILE_MODE));
        replace(folder.as_fd(), name, &bytes, mode).map_err(failed)?;
        Ok(json!({ "path": path, "size": size, "created": old.is_none() }))
    }

    fn bytes<'a>(&self, content: &'a str) -> Result<Cow<'a, [u8]>, FileError> {
        match self.encoding {
            Encoding::Utf8 => Ok(Cow::Borrowed(content.as_bytes())),
            Encoding::Base64 | Encoding::Binary => {
                let text: String = content.chars().filter(|c| !c.is_ascii_whitespace()).collect();
                STANDARD.decode(text).map(Cow::Owned).map_err(|error| FileError::Base64(error.to_string()))
            }
        }
    }
}

/// Writes a temporary file and renames it over the target: readers see the old or the new file, and no link is
/// followed.
pub(super) fn replace(folder: BorrowedFd<'_>, name: &str, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
    let temporary = format!("{TEMPORARY_PREFIX}{}{TEMPORARY_SUFFIX}", Uuid::now_v7().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, &temporary, flags, Mode::from_raw_mode(0o600))?;
    let written = write_and_sync(File::from(file), bytes, mode)
        .and_then(|()| renameat(folder, &temporary, folder, name));
    if let Err(errno) = written {
        // The first error is returned, even if the temporary file cannot be removed.
        let _ = unlinkat(folder, &temporary, AtFlags::empty());
        return Err(errno);
    }
    // The folder was opened with `O_PATH`, which cannot be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(folder, ".", flags, Mode::empty()).and_then(fsync)
}

fn write_and_sync(mut file: File, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(bytes).map_err(errno)?;
    fchmod(&file, mode)?;
    file.sync_all().map_err(errno)
}
