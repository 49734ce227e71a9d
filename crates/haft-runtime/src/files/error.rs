//! What can go wrong with a file, and what a caller learns of it.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use rustix::io::Errno;
use serde_json::json;

/// Why a file could not be read or written. `path` is what the caller named, relative to the root.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileError {
    #[error("path escapes sandbox: `{}` {why}", excerpt(path, 200))]
    Escapes { path: String, why: &'static str },
    #[error("`{}` {why}", excerpt(path, 200))]
    Unfit { path: String, reason: &'static str, why: String },
    #[error("the path is empty; name a file of the sandbox")]
    Empty,
    #[error("the sandbox `{name}` cannot be opened: {source}")]
    Root { name: String, source: Errno },
    #[error("the sandbox `{0}` is read-only")]
    ReadOnly(String),
    #[error("the content is not valid base64: {0}")]
    Base64(String),
}

impl FileError {
    pub(super) fn escapes(path: &str, why: &'static str) -> Self {
        Self::Escapes { path: path.to_owned(), why }
    }

    pub(super) fn unfit(path: &str, reason: &'static str, why: impl Into<String>) -> Self {
        Self::Unfit { path: path.to_owned(), reason, why: why.into() }
    }

    /// Makes the error of a failed system call on a path.
    pub(super) fn of(path: &str, errno: Errno) -> Self {
        let (reason, why) = match errno {
            Errno::XDEV => return Self::escapes(path, "leads out of it"),
            Errno::LOOP => return Self::escapes(path, "has a link that is not followed"),
            Errno::AGAIN => return Self::escapes(path, "changed while it was looked up"),
            Errno::NOENT => ("not_found", "does not exist"),
            Errno::NOTDIR => ("not_found", "does not exist: a part of it is no folder"),
            Errno::NAMETOOLONG => ("invalid_path", "has a name that is too long"),
            Errno::INVAL | Errno::ILSEQ => ("invalid_path", "is no name that the file system takes"),
            Errno::ACCESS | Errno::PERM => {
                ("permission", "may not be opened: its permissions do not allow it")
            }
            Errno::ROFS => ("permission", "is on a file system that is read-only"),
            Errno::ISDIR => ("not_a_file", "is a folder"),
            Errno::NXIO | Errno::NODEV => ("not_a_file", "is no regular file"),
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => ("no_space", "does not fit on the disk"),
            Errno::NOSYS => ("unsupported", "cannot be opened safely: file tools need Linux 5.6 or newer"),
            other => {
                return Self::unfit(
                    path,
                    "io",
                    format!("cannot be used: system error {}", other.raw_os_error()),
                );
            }
        };
        Self::unfit(path, reason, why)
    }
}

impl From<FileError> for CallError {
    fn from(error: FileError) -> Self {
        let text = error.to_string();
        match error {
            FileError::Escapes { .. } => CallError::new(ErrorCode::PathEscapes, text),
            FileError::Unfit { reason, .. } => {
                CallError::new(ErrorCode::ExecutionFailed, text).with_details(json!({ "reason": reason }))
            }
            FileError::Empty => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "invalid_path" })),
            FileError::Root { .. } => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "sandbox" }))
                .for_model("the folder of this tool cannot be opened"),
            FileError::ReadOnly(_) => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "read_only" })),
            FileError::Base64(_) => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "invalid_base64" })),
        }
    }
}
