//! What keeps a process from being run at all.

use std::io;
use std::path::PathBuf;

use crate::engine;
use crate::settings::EngineName;

/// What keeps a process from being run at all. A process that ran and failed is no error here.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine is not on this machine.
    #[error("the sandbox engine `{engine}` is not available: {reason}")]
    Unavailable {
        /// Which engine.
        engine: EngineName,
        /// Why, and what would help.
        reason: String,
    },
    /// The program is not there.
    #[error("the program `{0}` was not found in the sandbox")]
    MissingProgram(String),
    /// What is asked for cannot be had from this engine.
    #[error("the sandbox engine `{engine}` cannot {what}")]
    Unsupported {
        /// Which engine.
        engine: EngineName,
        /// What it cannot.
        what: &'static str,
    },
    /// A variable or an argument that no process can be given.
    #[error("{what} {why}")]
    Argument {
        /// Which one.
        what: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The engine refused to set the sandbox up.
    #[error("the sandbox engine `{engine}` failed: {message}")]
    Engine {
        /// Which engine.
        engine: EngineName,
        /// What it said.
        message: String,
    },
    /// A folder of the sandbox could not be made.
    #[error("failed to prepare `{path}`")]
    Prepare {
        /// Which folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The operating system refused.
    #[error("failed to {doing}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl SandboxError {
    /// Completes an engine's failure, as [`crate::Running::wait`] returns it, with what was written to the
    /// standard error.
    #[must_use]
    pub fn explained(self, stderr: &str) -> Self {
        match self {
            SandboxError::Engine { engine: EngineName::Bubblewrap, message } if message.is_empty() => {
                engine::engine_failure(stderr)
            }
            SandboxError::Engine { engine, message } if message.is_empty() => {
                SandboxError::Engine { engine, message: stderr.trim().chars().take(500).collect() }
            }
            other => other,
        }
    }

    /// Says what was being done when the system refused.
    pub(crate) fn system(doing: &'static str) -> impl FnOnce(io::Error) -> SandboxError {
        move |source| SandboxError::System { doing, source }
    }
}
