//! Why a tool cannot be registered, a filter cannot be made, or a set cannot be built.

use std::fmt;
use std::path::PathBuf;

use haft_core::name::NameError;
use haft_core::problem::{Problem, join};
use haft_runtime::egress::RulesError;
use haft_runtime::files::RootsError;

/// Why a tool cannot be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("register the tool `{tool}`: {reason}")]
pub struct RegisterError {
    /// The name that it was to have.
    pub tool: String,
    /// What stands in the way.
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
    /// The definition is wrong, or its schema does not fit the function.
    #[error("{}", join(.0))]
    Definition(Vec<Problem>),
}

/// Why a set of tools cannot be narrowed: names that are not in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct FilterError {
    /// The names that nothing has, each with the nearest one that something has.
    pub unknown: Vec<(String, Option<String>)>,
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no tool of this set is called ")?;
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

/// Why a set of tools cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A sandbox is not a folder.
    #[error("use `{}` as the sandbox `{name}`: {source}", path.display())]
    Folder {
        /// The name of the sandbox.
        name: String,
        /// The folder.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The names of sandboxes are wrong.
    #[error(transparent)]
    Sandboxes(#[from] RootsError),
    /// A host pattern is not one.
    #[error(transparent)]
    Egress(#[from] RulesError),
    /// A bound is zero, which would let nothing through.
    #[error("`{0}` has to be at least 1")]
    Zero(&'static str),
    /// A tool cannot be registered.
    #[error(transparent)]
    Tool(#[from] RegisterError),
    /// A built-in tool has no name; none of them is so.
    #[cfg(feature = "builtins")]
    #[error("make the built-in tools")]
    BuiltIns(#[from] NameError),
}
