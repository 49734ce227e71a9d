//! Results of loading definitions.

use std::fmt;
use std::path::PathBuf;

use haft_core::problem::{Problem, join};

/// The result of loading a folder: valid files load, errors are reported per file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LoadReport {
    /// The names of the tools that were loaded or reloaded, in the order of their files.
    pub loaded: Vec<String>,
    /// The files that could not be loaded, each with all its errors.
    pub failed: Vec<LoadError>,
    /// Tools of the folder that were loaded but cannot run, for example because their function is not registered.
    pub not_ready: Vec<NotReady>,
    /// Warnings about files that were loaded, such as unknown keys.
    pub warnings: Vec<LoadError>,
}

impl LoadReport {
    /// Returns whether every file was loaded and every tool can run; warnings are ignored.
    pub fn is_clean(&self) -> bool {
        self.failed.is_empty() && self.not_ready.is_empty()
    }
}

impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} loaded, {} failed", self.loaded.len(), self.failed.len())?;
        for error in &self.failed {
            write!(f, "\n{error}")?;
        }
        for tool in &self.not_ready {
            write!(f, "\n{tool}")?;
        }
        Ok(())
    }
}

/// The result of loading one definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    /// The name of the tool.
    pub name: String,
    /// Warnings about the definition, such as unknown keys.
    pub warnings: Vec<Problem>,
    /// The reason why the tool cannot run, for example because its function is not registered.
    pub not_ready: Option<NotReady>,
}

/// The error of loading a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct LoadError {
    /// The file or folder; `None` for a string.
    pub path: Option<PathBuf>,
    /// All problems of the definition, with line numbers where known.
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

/// A tool that cannot run, or a file that could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotReady {
    /// The name of the tool; for an invalid file, the name derived from the file name.
    pub name: String,
    /// The file that defines the tool, if any.
    pub path: Option<PathBuf>,
    /// The reason, with a fix where there is one.
    pub reason: String,
}

impl fmt::Display for NotReady {
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
