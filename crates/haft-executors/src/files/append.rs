//! Appends to a file.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use haft_core::executor::CallContext;
use haft_core::outcome::Outcome;
use rustix::fs::{AtFlags, Mode, OFlags, fstat, openat, statat};
use rustix::io::Errno;
use serde_json::{Value, json};

use super::beneath;
use super::error::FileError;
use super::roots::{Files, Root};
use super::work::run_blocking;
use super::write::NEW_FILE_MODE;

/// The options of [`Files::append`].
#[derive(Debug, Clone)]
pub struct AppendOptions {
    /// The path, relative to the root.
    pub path: String,
    /// The text.
    pub content: String,
    /// The maximum size of the file afterwards.
    pub max_bytes: u64,
}

impl Files {
    /// Appends a text to a file of the workspace, or of the first root of the tenant. A missing file is created, with its folders.
    pub async fn append(&self, call: &CallContext, options: AppendOptions) -> Outcome {
        let root = self.of_call(call, None)?;
        run_blocking(&self.permits, move || options.run(&root)).await
    }
}

impl AppendOptions {
    fn run(&self, root: &Root) -> Result<Value, FileError> {
        if root.read_only {
            return Err(FileError::ReadOnly(root.name.clone()));
        }
        let opened = root.open()?;
        let (folder, name) = beneath::open_parent(opened.as_fd(), &self.path, true)?;
        let failed = |errno| FileError::of(&self.path, errno);
        let (file, created) = self.open(folder.as_fd(), name)?;
        let stat = fstat(&file).map_err(failed)?;
        // It may have been replaced since it was checked.
        beneath::require_regular(&self.path, &stat)?;
        let added = u64::try_from(self.content.len()).unwrap_or(u64::MAX);
        let size = u64::try_from(stat.st_size).unwrap_or_default().saturating_add(added);
        if size > self.max_bytes {
            let message = format!("would have {size} bytes, which exceeds the limit of {}", self.max_bytes);
            return Err(FileError::unusable(&self.path, "too_large", message));
        }
        let io = |error: std::io::Error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO));
        let mut file = File::from(file);
        // A single append, so that concurrent appends do not mix.
        file.write_all(self.content.as_bytes()).map_err(io)?;
        file.sync_all().map_err(io)?;
        Ok(json!({ "path": self.path, "size": size, "appended": added, "created": created }))
    }

    /// Opens the file without following links; returns whether it was created.
    fn open(&self, folder: BorrowedFd<'_>, name: &str) -> Result<(OwnedFd, bool), FileError> {
        let failed = |errno| FileError::of(&self.path, errno);
        let flags = OFlags::WRONLY
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => {
                beneath::require_regular(&self.path, &stat)?;
                openat(folder, name, flags, Mode::empty()).map(|file| (file, false)).map_err(failed)
            }
            Err(Errno::NOENT) => {
                let new = flags | OFlags::CREATE | OFlags::EXCL;
                openat(folder, name, new, Mode::from_raw_mode(NEW_FILE_MODE))
                    .map(|file| (file, true))
                    .map_err(failed)
            }
            Err(errno) => Err(failed(errno)),
        }
    }
}
