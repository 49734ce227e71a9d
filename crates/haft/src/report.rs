//! What came of loading definitions.

use std::fmt;
use std::path::PathBuf;

use haft_core::problem::{Problem, join};

/// What came of loading a folder: everything that is good is loaded, everything else is told.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// The names of the tools that were loaded, or loaded anew, in the order of their files.
    pub loaded: Vec<String>,
    /// The files that define no tool, each with all that is wrong with it.
    pub refused: Vec<LoadError>,
    /// Tools of the folder that are there but cannot run now, as when their function is not registered yet.
    pub not_ready: Vec<Fault>,
    /// Doubts about files that were loaded, such as keys that nobody knows.
    pub warnings: Vec<LoadError>,
}

impl LoadReport {
    /// Tells whether everything was loaded and can run; warnings do not matter.
    pub fn is_clean(&self) -> bool {
        self.refused.is_empty() && self.not_ready.is_empty()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} loaded, {} refused", self.loaded.len(), self.refused.len())?;
        for refused in &self.refused {
            write!(f, "\n{refused}")?;
        }
        for fault in &self.not_ready {
            write!(f, "\n{fault}")?;
        }
        Ok(())
    }
}

/// What came of loading one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The name of the tool.
    pub name: String,
    /// Doubts about the definition, such as keys that nobody knows.
    pub warnings: Vec<Problem>,
    /// Why the tool cannot run now, as when its function is not registered yet.
    pub not_ready: Option<Fault>,
}

/// What is wrong with a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LoadError {
    /// The file or folder; `None` for a text.
    pub path: Option<PathBuf>,
    /// Everything that is wrong, each with its line where that is known.
    pub problems: Vec<Problem>,
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}: {}", path.display(), join(&self.problems)),
            None => write!(f, "{}", join(&self.problems)),
        }
    }
}

/// Why a tool cannot run now, or a file defines none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The name of the tool; for a file that cannot be read, the name that the file's name suggests.
    pub name: String,
    /// The file that defines it, where there is one.
    pub path: Option<PathBuf>,
    /// What is wrong, and what helps.
    pub reason: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not ready: ", self.name)?;
        if let Some(path) = self.path.as_ref().map(|path| path.display().to_string())
            && !self.reason.starts_with(&path)
        {
            write!(f, "{path}: ")?;
        }
        f.write_str(&self.reason)
    }
}
