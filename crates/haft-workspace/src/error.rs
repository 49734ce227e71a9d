//! What can go wrong.

use std::io;
use std::path::{Path, PathBuf};

use crate::PackId;

/// The result of an operation on a workspace.
pub type WorkspaceResult<T> = Result<T, WorkspaceError>;

/// An operation on a workspace failed.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// The operating system refused something.
    #[error("failed to {operation} `{}`: {source}", path.display())]
    Io {
        /// What was done: a verb.
        operation: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The folder exceeds a limit.
    #[error("the workspace has more than {limit} {what}; delete some, or raise the limit")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much is allowed.
        limit: u64,
    },
    /// The folder of the workspace is not a folder.
    #[error("`{}` is not a folder", .0.display())]
    NotAFolder(PathBuf),
    /// There is no such file in a manifest.
    #[error("there is no file `{0}` in this state of the workspace")]
    NoSuchFile(String),
    /// A pack does not exist.
    #[error("the pack {0} is missing: the stored state cannot be read")]
    MissingPack(PackId),
    /// A pack has other bytes than were written.
    #[error("the pack {pack} is damaged: {problem}")]
    Damaged {
        /// The pack.
        pack: PackId,
        /// The problem.
        problem: &'static str,
    },
}

impl WorkspaceError {
    /// Returns a function that wraps an error of the operating system.
    pub(crate) fn io<E: Into<io::Error>>(operation: &'static str, path: &Path) -> impl FnOnce(E) -> Self {
        move |source| Self::Io { operation, path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn damaged(pack: PackId, problem: &'static str) -> Self {
        Self::Damaged { pack, problem }
    }
}
