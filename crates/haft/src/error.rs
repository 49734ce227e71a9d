//! Errors of registering, filtering and building.

use std::fmt;
use std::path::PathBuf;

use haft_core::name::NameError;
use haft_core::problem::{Problem, join};
use haft_executors::egress::RulesError;
use haft_executors::files::RootsError;

/// The error of registering a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot register tool `{tool}`: {kind}")]
pub struct RegisterError {
    /// The name of the tool.
    pub tool: String,
    /// The cause.
    pub kind: RegisterErrorKind,
}

/// The cause of a [`RegisterError`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterErrorKind {
    /// The name is invalid.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Another tool has the name.
    #[error("a tool with this name already exists; remove it first or choose another name")]
    Duplicate,
    /// The definition is invalid, or its schema does not match the function.
    #[error("{}", join(.0))]
    Definition(Vec<Problem>),
}

/// The error of filtering a set of tools: unknown names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FilterError {
    /// The unknown names, each with the most similar existing name.
    pub unknown: Vec<(String, Option<String>)>,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tool not found: ")?;
        for (index, (name, nearest)) in self.unknown.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "`{name}`")?;
            if let Some(nearest) = nearest {
                write!(f, " (did you mean `{nearest}`?)")?;
            }
        }
        Ok(())
    }
}

/// The error of building a set of tools.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A sandbox folder cannot be used.
    #[error("cannot use `{}` as sandbox `{name}`: {source}", path.display())]
    Folder {
        /// The name of the sandbox.
        name: String,
        /// The folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The names of the sandboxes are invalid.
    #[error(transparent)]
    Sandboxes(#[from] RootsError),
    /// A host pattern is invalid.
    #[error(transparent)]
    Egress(#[from] RulesError),
    /// A limit is zero.
    #[error("`{0}` must be at least 1")]
    Zero(&'static str),
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// A built-in tool has an invalid name, which is a bug in haft.
    #[cfg(feature = "builtins")]
    #[error("cannot create the built-in tools")]
    BuiltIns(#[from] NameError),
}
