//! Writing a file, whole or not at all.

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

/// The permissions of a new file, where the definition names none.
pub(super) const NEW_FILE: u32 = 0o644;

/// What to write.
#[derive(Debug, Clone)]
pub(super) struct Writing {
    pub(super) root: Root,
    pub(super) encoding: Encoding,
    pub(super) mode: Option<u32>,
    pub(super) mkdir: bool,
    /// The most bytes of the file.
    pub(super) most: u64,
}

impl Writing {
    /// Writes the file; blocks.
    pub(super) fn run(&self, path: &str, content: &str) -> Result<Value, FileError> {
        if self.root.read_only {
            return Err(FileError::ReadOnly(self.root.name.clone()));
        }
        let bytes = self.bytes(content)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > self.most {
            let why = format!(
                "would have {size} bytes; at most {} are written (`limits.max_request_bytes`)",
                self.most
            );
            return Err(FileError::unfit(path, "too_large", why));
        }
        let root = self.root.open()?;
        let (folder, name) = beneath::open_parent(root.as_fd(), path, self.mkdir)?;
        let failed = |errno| FileError::of(path, errno);
        let old = match statat(folder.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                beneath::regular(path, &stat)?;
                Some(stat.st_mode & 0o777)
            }
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(failed(errno)),
        };
        let mode = Mode::from_raw_mode(self.mode.or(old).unwrap_or(NEW_FILE));
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

/// Writes beside the file and renames over it: whoever looks sees the old or the new, and no link is followed.
fn replace(folder: BorrowedFd<'_>, name: &str, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
    let beside = format!(".haft-{}.tmp", Uuid::now_v7().simple());
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, &beside, flags, Mode::from_raw_mode(0o600))?;
    let written = fill(File::from(file), bytes, mode).and_then(|()| renameat(folder, &beside, folder, name));
    if let Err(errno) = written {
        // The reason to fail is told; what is left of a file that cannot be removed either is not.
        let _ = unlinkat(folder, &beside, AtFlags::empty());
        return Err(errno);
    }
    // The handle of the folder may only look up; another one can be synced.
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    openat(folder, ".", flags, Mode::empty()).and_then(fsync)
}

fn fill(mut file: File, bytes: &[u8], mode: Mode) -> Result<(), Errno> {
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    file.write_all(bytes).map_err(errno)?;
    fchmod(&file, mode)?;
    file.sync_all().map_err(errno)
}
