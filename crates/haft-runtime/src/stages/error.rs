//! Why a stage cannot be made.

use crate::rate::RateError;

/// Why a stage cannot be made: as it was asked for, no call would ever get through.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StageError {
    /// A rate is none.
    #[error("`RateLimit`: {0}")]
    Rate(#[from] RateError),
    /// The rate of one tool is none.
    #[error("`RateLimit` of `{tool}`: {error}")]
    RateOfTool {
        /// The name of the tool.
        tool: String,
        /// What is wrong with it.
        #[source]
        error: RateError,
    },
    /// No call at once.
    #[error("`Concurrency` of 0 would let no call through; use 1 or more, or leave the stage out")]
    NoRoom,
    /// No time for a call.
    #[error("`Timeout` of no time would let no call through; name a time such as `Duration::from_secs(30)`")]
    NoTime,
}
