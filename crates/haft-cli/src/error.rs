//! The one place where errors become words, hints and exit codes.

use std::error::Error as _;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use haft_core::outcome::ErrorCode;
use haft_core::problem::{Problem, excerpt};
use serde_json::{Map, Value, json};

use crate::config::ConfigError;

/// What a command ends with. The numbers are documented in `docs/cli.md` and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Something failed.
    Failed = 1,
    /// A flag, an argument or the configuration is wrong.
    Usage = 2,
    /// There is no such thing.
    NotFound = 3,
    /// Something stands in the way: it exists already, was changed meanwhile, is switched off.
    Conflict = 4,
    /// The tool ran and failed.
    CallFailed = 5,
    /// The server cannot be reached, or the home folder cannot be opened.
    Unreachable = 6,
    /// The token is missing, wrong, or may not do this.
    Denied = 7,
    /// The definition or the arguments are not valid.
    Invalid = 8,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An answer of the server that is no success.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The stable code, such as `not_found`.
    pub(crate) code: String,
    /// What happened.
    pub(crate) message: String,
    /// What a program may want to read.
    pub(crate) details: Value,
    /// Under which the server logged it.
    pub(crate) request_id: Option<String>,
}

/// Everything that can end a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The arguments do not make sense together.
    #[error("{0}")]
    Usage(String),
    /// The server said no.
    #[error("{}", .0.message)]
    Api(Box<ApiError>),
    /// A tool ran and failed; `--json` has printed the outcome already.
    #[error("the call failed: {message}")]
    CallFailed {
        /// The stable code.
        code: String,
        /// What happened.
        message: String,
    },
    /// The definition is not valid; what is wrong was printed as data.
    #[error("`{0}` is not valid")]
    NotValid(String),
    /// No operation of a document became a tool; each reason was printed as data.
    #[error(
        "no tool came of the {}: {reason}{}",
        if *operations == 1 { "operation".to_owned() } else { format!("{operations} operations") },
        match others { 0 => String::new(), 1 => ", and one other reason".to_owned(), n => format!(", and {n} other reasons") }
    )]
    NothingImported {
        /// How many there were.
        operations: usize,
        /// Why most of them did not.
        reason: String,
        /// How many other reasons there are.
        others: usize,
    },
    /// Checks of `haft doctor` failed; they were printed as data.
    #[error("{0} check(s) failed")]
    Unhealthy(usize),
    /// No answer came.
    #[error("cannot reach the server at `{url}`")]
    Unreachable {
        /// Where.
        url: String,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The answer is not one of haft.
    #[error("cannot understand the answer of the server at `{url}` (HTTP {status})")]
    Answer {
        /// Where.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// The home folder cannot be opened.
    #[error("cannot open the home folder `{}`", home.display())]
    Open {
        /// The folder.
        home: PathBuf,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The address is taken or not ours.
    #[error("cannot listen on `{addr}`")]
    Listen {
        /// The address.
        addr: std::net::SocketAddr,
        /// Why not.
        source: std::io::Error,
    },
    /// Another server has this home folder.
    #[error("a server runs on `{}` already, at `http://{addr}`", home.display())]
    AlreadyServing {
        /// The folder.
        home: std::path::PathBuf,
        /// Where the other one listens.
        addr: std::net::SocketAddr,
    },
    /// There is no token for a server.
    #[error("there is no token for the server at `{0}`")]
    NoToken(String),
    /// A file or a stream failed.
    #[error("cannot {doing}")]
    Io {
        /// What was being done.
        doing: String,
        /// What went wrong.
        source: std::io::Error,
    },
    /// The editor failed.
    #[error("the editor `{editor}` ended with {status}")]
    Editor {
        /// The command.
        editor: String,
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// An edited text could not be stored; it is kept in a file.
    #[error("{error}")]
    Kept {
        /// Why.
        error: Box<CliError>,
        /// Where the text is.
        path: PathBuf,
        /// The tool.
        tool: String,
    },
}

impl CliError {
    /// Wraps an error of a file or a stream.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let doing = doing.into();
        move |source| Self::Io { doing, source }
    }

    /// Tells whether the reader of our output went away, which is no fault.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Returns what the process ends with.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Usage(_) => Exit::Usage,
            Self::Api(error) => api_exit(error),
            Self::CallFailed { .. } => Exit::CallFailed,
            Self::NotValid(_) | Self::NothingImported { .. } => Exit::Invalid,
            Self::Unreachable { .. } | Self::Answer { .. } | Self::Open { .. } => Exit::Unreachable,
            Self::NoToken(_) => Exit::Denied,
            Self::AlreadyServing { .. }
            | Self::Listen { .. }
            | Self::Io { .. }
            | Self::Editor { .. }
            | Self::Unhealthy(_) => Exit::Failed,
            Self::Kept { error, .. } => error.exit(),
        }
    }

    /// Returns what may help.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint(),
            Self::Api(error) => api_hint(error),
            Self::Unreachable { .. } => {
                Some("start one with `haft serve`, or leave `--server` and `HAFT_SERVER` out".to_owned())
            }
            Self::Answer { .. } => Some("is it a haft server? See `haft doctor`".to_owned()),
            Self::Open { .. } => Some("`haft doctor` checks the home folder".to_owned()),
            Self::Listen { source, .. } if source.kind() == std::io::ErrorKind::AddrInUse => Some(
                "another program listens there; choose another address with `--addr HOST:PORT`".to_owned(),
            ),
            Self::AlreadyServing { .. } => {
                Some("stop it first, or choose another folder with `--home`".to_owned())
            }
            Self::NoToken(_) => Some("give one with `--token` or `HAFT_TOKEN`".to_owned()),
            Self::Kept { path, tool, .. } => {
                let path = path.display();
                Some(format!(
                    "your text is kept in `{path}`; repeat with `haft tool edit {tool} --from {path}`"
                ))
            }
            Self::Usage(_)
            | Self::CallFailed { .. }
            | Self::NotValid(_)
            | Self::NothingImported { .. }
            | Self::Unhealthy(_)
            | Self::Listen { .. }
            | Self::Io { .. }
            | Self::Editor { .. } => None,
        }
    }

    /// Returns the text for people: the error, what caused it, and a hint.
    pub(crate) fn text(&self) -> String {
        let mut text = excerpt_lines(&self.to_string());
        let mut cause = self.source();
        while let Some(error) = cause {
            let _ = write!(text, ": {}", excerpt_lines(&error.to_string()));
            cause = error.source();
        }
        for problem in self.problems() {
            let line = excerpt(&problem.to_string(), 400);
            if !text.contains(&line) {
                let _ = write!(text, "\n  {line}");
            }
        }
        if let Self::Api(error) = self
            && let (Some(id), 500..) = (&error.request_id, error.status)
        {
            let _ = write!(text, " (request {})", excerpt(id, 64));
        }
        if let Some(hint) = self.hint() {
            let _ = write!(text, "\n\nhint: {hint}");
        }
        text
    }

    /// Returns the form for programs.
    pub(crate) fn json(&self) -> Value {
        let (code, details) = match self {
            Self::Api(error) => (error.code.clone(), error.details.clone()),
            Self::CallFailed { code, .. } => (code.clone(), Value::Null),
            other => (other.exit().name().to_owned(), Value::Null),
        };
        let mut error = Map::new();
        error.insert("code".to_owned(), Value::from(code));
        error.insert("message".to_owned(), Value::from(self.message()));
        if !details.is_null() {
            error.insert("details".to_owned(), details);
        }
        if let Some(hint) = self.hint() {
            error.insert("hint".to_owned(), Value::from(hint));
        }
        json!({"status": "error", "error": error})
    }

    /// Returns the error and what caused it in one line.
    pub(crate) fn message(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let _ = write!(text, ": {error}");
            cause = error.source();
        }
        text
    }

    /// Reads the list of problems that some answers carry.
    fn problems(&self) -> Vec<Problem> {
        let Self::Api(error) = self else { return Vec::new() };
        let listed = ["errors", "problems", "violations"].iter().find_map(|key| error.details.get(key));
        let list = listed.unwrap_or(&error.details);
        let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().take(20).filter_map(|item| serde_json::from_value(item.clone()).ok()).collect()
    }
}

impl Exit {
    /// Returns the code that the form for programs names.
    const fn name(self) -> &'static str {
        match self {
            Exit::Failed => "failed",
            Exit::Usage => "usage",
            Exit::NotFound => "not_found",
            Exit::Conflict => "conflict",
            Exit::CallFailed => "call_failed",
            Exit::Unreachable => "unreachable",
            Exit::Denied => "denied",
            Exit::Invalid => "invalid",
        }
    }
}

/// Decides by the code; a code that is newer than this program, by the status.
fn api_exit(error: &ApiError) -> Exit {
    let code = serde_json::from_value(Value::from(error.code.as_str()));
    code.map_or_else(|_| status_exit(error.status), code_exit)
}

const fn code_exit(code: ErrorCode) -> Exit {
    match code {
        ErrorCode::InvalidRequest
        | ErrorCode::InvalidArguments
        | ErrorCode::InvalidDefinition
        | ErrorCode::InvalidPageToken
        | ErrorCode::TooLarge
        | ErrorCode::UnsupportedMediaType => Exit::Invalid,
        ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::PolicyDenied
        | ErrorCode::ApprovalRequired => Exit::Denied,
        ErrorCode::NotFound => Exit::NotFound,
        ErrorCode::AmbiguousName
        | ErrorCode::Conflict
        | ErrorCode::IdempotencyConflict
        | ErrorCode::ReadOnly
        | ErrorCode::Disabled
        | ErrorCode::NotPublished
        | ErrorCode::NotReady => Exit::Conflict,
        ErrorCode::Overloaded | ErrorCode::RateLimited | ErrorCode::StoreUnavailable => Exit::Unreachable,
        ErrorCode::Timeout
        | ErrorCode::Cancelled
        | ErrorCode::Template
        | ErrorCode::SecretMissing
        | ErrorCode::PathEscapes
        | ErrorCode::EgressRefused
        | ErrorCode::Network
        | ErrorCode::HttpStatus
        | ErrorCode::InvalidResponse
        | ErrorCode::InvalidOutput
        | ErrorCode::SandboxUnavailable
        | ErrorCode::ExecutionFailed
        | ErrorCode::Panicked
        | ErrorCode::TooDeep => Exit::CallFailed,
        ErrorCode::MethodNotAllowed | ErrorCode::Internal => Exit::Failed,
    }
}

const fn status_exit(status: u16) -> Exit {
    match status {
        400 | 413 | 415 | 422 => Exit::Invalid,
        401 | 403 => Exit::Denied,
        404 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        429 | 502..=504 => Exit::Unreachable,
        _ => Exit::Failed,
    }
}

fn api_hint(error: &ApiError) -> Option<String> {
    let text = match error.code.as_str() {
        "unauthorized" => "give a valid token with `--token` or `HAFT_TOKEN`",
        "not_found" if error.message.contains("tool") => "`haft tool list` shows what there is",
        "ambiguous_name" => "name it with its bundle, as in `bundle:name`",
        "not_published" => "`haft tool publish` it, or call it with `--mode debug`",
        "invalid_arguments" => "`haft tool show` prints the schema of the arguments",
        _ => return None,
    };
    Some(text.to_owned())
}

/// Makes a text harmless for a terminal, line by line.
fn excerpt_lines(text: &str) -> String {
    text.lines().map(|line| excerpt(line, 2000)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
