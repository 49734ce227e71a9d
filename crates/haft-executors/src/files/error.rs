//! Errors of file operations.

use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use rustix::io::Errno;
use serde_json::json;

/// Why a file could not be read or written. `path` is relative to the root, as the caller passed it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileError {
    #[error("path escapes sandbox: `{}` {message}", excerpt(path, 200))]
    Escapes { path: String, message: &'static str },
    #[error("`{}` {message}", excerpt(path, 200))]
    Unusable { path: String, reason: &'static str, message: String },
    #[error("the path is empty")]
    Empty,
    #[error("failed to open sandbox `{name}`: {source}")]
    Root { name: String, source: Errno },
    #[error("sandbox `{0}` is read-only")]
    ReadOnly(String),
    #[error("invalid base64 content: {0}")]
    Base64(String),
}

impl FileError {
    pub(super) fn escapes(path: &str, message: &'static str) -> Self {
        Self::Escapes { path: path.to_owned(), message }
    }

    pub(super) fn unusable(path: &str, reason: &'static str, message: impl Into<String>) -> Self {
        Self::Unusable { path: path.to_owned(), reason, message: message.into() }
    }

    /// Converts the error of a system call on a path.
    pub(super) fn of(path: &str, errno: Errno) -> Self {
        let (reason, message) = match errno {
            Errno::XDEV => return Self::escapes(path, "points outside of the sandbox"),
            Errno::LOOP => return Self::escapes(path, "contains a link that is not followed"),
            Errno::AGAIN => return Self::escapes(path, "changed during the lookup"),
            Errno::NOENT => ("not_found", "does not exist"),
            Errno::NOTDIR => ("not_found", "does not exist: a parent is not a folder"),
            Errno::NAMETOOLONG => ("invalid_path", "has a name that is too long"),
            Errno::INVAL | Errno::ILSEQ => ("invalid_path", "is not a valid file name"),
            Errno::ACCESS | Errno::PERM => ("permission", "cannot be opened: permission denied"),
            Errno::ROFS => ("permission", "is on a read-only file system"),
            Errno::ISDIR => ("not_a_file", "is a folder"),
            Errno::NXIO | Errno::NODEV => ("not_a_file", "is not a regular file"),
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => {
                ("no_space", "cannot be written: no space left on the disk")
            }
            Errno::NOSYS => ("unsupported", "cannot be opened safely: file tools need Linux 5.6 or newer"),
            other => {
                return Self::unusable(
                    path,
                    "io",
                    format!("cannot be accessed: system error {}", other.raw_os_error()),
                );
            }
        };
        Self::unusable(path, reason, message)
    }
}

impl From<FileError> for CallError {
    fn from(error: FileError) -> Self {
        let text = error.to_string();
        match error {
            FileError::Escapes { .. } => CallError::new(ErrorCode::PathEscapes, text),
            FileError::Unusable { reason, .. } => {
                CallError::new(ErrorCode::ExecutionFailed, text).with_details(json!({ "reason": reason }))
            }
            FileError::Empty => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "invalid_path" })),
            FileError::Root { .. } => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "sandbox" }))
                .for_model("the folder of this tool is unavailable"),
            FileError::ReadOnly(_) => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "read_only" })),
            FileError::Base64(_) => CallError::new(ErrorCode::ExecutionFailed, text)
                .with_details(json!({ "reason": "invalid_base64" })),
        }
    }
}
