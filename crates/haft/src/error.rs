//! Why a tool cannot be registered.

use haft_core::name::NameError;
use haft_core::problem::{Problem, join};

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("register the tool `{tool}`")]
pub struct RegisterError {
    /// The name that it was to have.
    pub tool: String,
    /// What stands in the way.
    #[source]
    pub reason: Reason,
}

/// What stands in the way of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// The name is not one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another tool has the name.
    #[error("a tool of this name is there already; remove it first, or choose another name")]
    Duplicate,
    /// The definition is wrong.
    #[error("{}", join(.0))]
    Definition(Vec<Problem>),
}
