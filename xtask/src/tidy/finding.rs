//! One broken rule: where, which, and what to do about it.

use std::fmt;

/// One broken rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// The file, relative to the workspace root.
    pub(crate) file: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// What is against which rule.
    pub(crate) rule: String,
    /// What to do about it.
    pub(crate) remedy: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, rule, remedy } = self;
        write!(f, "{file}:{line}: {rule}\n    remedy: {remedy}")
    }
}
