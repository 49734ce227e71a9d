//! Errors that prevent a process from running.

use std::io;
use std::path::PathBuf;

use crate::engine;
use crate::settings::EngineName;

/// Why a process did not run. A process that ran and failed is not an error here.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The engine is unavailable on this machine.
    #[error("sandbox engine `{engine}` is unavailable: {reason}")]
    Unavailable {
        /// The engine.
        engine: EngineName,
        /// The reason and the fix.
        reason: String,
    },
    /// The program does not exist.
    #[error("program `{0}` not found in the sandbox")]
    MissingProgram(String),
    /// The engine does not support the request.
    #[error("sandbox engine `{engine}` cannot {what}")]
    Unsupported {
        /// The engine.
        engine: EngineName,
        /// The unsupported operation.
        what: &'static str,
    },
    /// A variable or an argument is invalid.
    #[error("{what} {why}")]
    Argument {
        /// The variable or argument.
        what: String,
        /// Why it is invalid.
        why: &'static str,
    },
    /// The engine failed to set up the sandbox.
    #[error("sandbox engine `{engine}` failed: {message}")]
    Engine {
        /// The engine.
        engine: EngineName,
        /// Its message.
        message: String,
    },
    /// A folder of the sandbox could not be created.
    #[error("failed to prepare `{path}`")]
    Prepare {
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A system call failed.
    #[error("failed to {operation}")]
    System {
        /// The attempted operation.
        operation: &'static str,
        /// The cause.
        source: io::Error,
    },
}

impl SandboxError {
    /// Adds standard error to an engine failure without a message, as [`crate::Running::wait`] returns it.
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

    /// Returns a constructor for [`SandboxError::System`].
    pub(crate) fn system(operation: &'static str) -> impl FnOnce(io::Error) -> SandboxError {
        move |source| SandboxError::System { operation, source }
    }
}
