//! What can be wrong with the configuration, each with its place.

use std::fmt;
use std::path::PathBuf;

use super::value::Wrong;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// A variable of the environment.
    Environment(String),
    /// A flag of the command.
    Flag(&'static str),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File { path, line } => write!(f, "`{}` line {line}", path.display()),
            Place::Environment(name) => write!(f, "the environment variable `{name}`"),
            Place::Flag(name) => write!(f, "the flag `{name}`"),
        }
    }
}

/// What can be wrong with the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// There is no place for the home folder.
    #[error("neither `--home`, `HAFT_HOME` nor `HOME` says where the home folder is")]
    NoHome,
    /// The home folder is a file.
    #[error("the home folder `{}` is a file", .0.display())]
    HomeIsFile(PathBuf),
    /// The file cannot be read.
    #[error("cannot read the configuration `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The file is no TOML.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What the parser says.
        message: String,
    },
    /// A key does not exist.
    #[error("{place}: unknown key `{key}`")]
    UnknownKey {
        /// Where.
        place: Place,
        /// The key as written, with its section.
        key: String,
        /// The known key that looks most like it.
        nearest: &'static str,
    },
    /// A value does not fit its key.
    #[error("{place}: `{key}` {wrong}")]
    Value {
        /// Where.
        place: Place,
        /// The key with its section.
        key: &'static str,
        /// What was expected.
        wrong: Wrong,
    },
}

impl ConfigError {
    /// Returns what may help.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::HomeIsFile(_) => {
                Some("name a folder with `--home DIR` or `HAFT_HOME`, or move the file away".to_owned())
            }
            Self::NoHome => Some("name one with `--home DIR`".to_owned()),
            Self::UnknownKey { nearest, .. } => Some(format!("the nearest known key is `{nearest}`")),
            Self::Read { .. } | Self::Syntax { .. } | Self::Value { .. } => None,
        }
    }
}
