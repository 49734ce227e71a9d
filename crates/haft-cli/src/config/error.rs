//! Errors in the configuration, each with its source.

use std::fmt;
use std::path::PathBuf;

use super::value::InvalidValue;
use crate::shell::quote;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigSource {
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
    },
    /// An environment variable.
    Environment(String),
    /// A command-line option.
    Flag(&'static str),
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigSource::File { path, line } => write!(f, "{}:{line}", path.display()),
            ConfigSource::Environment(name) => write!(f, "environment variable `{name}`"),
            ConfigSource::Flag(name) => write!(f, "option `{name}`"),
        }
    }
}

/// An error in the configuration.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The home folder is unknown.
    #[error("no home folder: `--home`, `HAFT_HOME` and `HOME` are not set")]
    NoHome,
    /// The home folder is a file.
    #[error("the home folder `{}` is not a folder", .0.display())]
    HomeIsFile(PathBuf),
    /// The home folder does not exist.
    #[error("the home folder `{}` does not exist", .0.display())]
    HomeMissing(PathBuf),
    /// The file cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The file is not valid TOML.
    #[error("{at}: {message}")]
    Syntax {
        /// The source.
        at: ConfigSource,
        /// The message of the parser.
        message: String,
    },
    /// A key does not exist.
    #[error("{at}: unknown key `{key}`")]
    UnknownKey {
        /// The source.
        at: ConfigSource,
        /// The key as written, with its section.
        key: String,
        /// The most similar key.
        nearest: &'static str,
    },
    /// A value is invalid.
    #[error("{at}: `{key}` {reason}")]
    Value {
        /// The source.
        at: ConfigSource,
        /// The key with its section.
        key: &'static str,
        /// What was expected.
        reason: InvalidValue,
    },
}

impl ConfigError {
    /// Returns a hint, if there is one.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::HomeIsFile(_) => Some("choose another folder with `--home DIR` or `HAFT_HOME`".to_owned()),
            Self::HomeMissing(home) => Some(format!(
                "create it with `haft init --home {}`, or choose another folder with `--home DIR` or `HAFT_HOME`",
                quote(&home.display().to_string())
            )),
            Self::NoHome => Some("pass `--home DIR`".to_owned()),
            Self::UnknownKey { nearest, .. } => Some(format!("did you mean `{nearest}`?")),
            Self::Read { .. } | Self::Syntax { .. } | Self::Value { .. } => None,
        }
    }
}
