//! Errors of stage settings.

use crate::rate::RateError;

/// Stage settings that would reject every call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// A rate is invalid.
    #[error("`RateLimit`: {0}")]
    Rate(#[from] RateError),
    /// The rate of one tool is invalid.
    #[error("`RateLimit` for `{tool}`: {error}")]
    RateOfTool {
        /// The name of the tool.
        tool: String,
        /// The error.
        #[source]
        error: RateError,
    },
    /// The concurrency limit is 0.
    #[error("`Concurrency`: a limit of 0 rejects every call; use 1 or more, or remove the stage")]
    ZeroConcurrency,
    /// The timeout is 0.
    #[error("`Timeout`: a timeout of 0 rejects every call; use a duration such as `Duration::from_secs(30)`")]
    ZeroTimeout,
}
