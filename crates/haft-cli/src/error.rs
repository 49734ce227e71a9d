//! The errors of commands: messages, hints and exit codes.

use std::error::Error;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

use haft_core::outcome::ErrorCode;
use haft_core::problem::{Problem, excerpt, join};
use serde_json::{Map, Value, json};
use url::Url;

use crate::client::DeviceLoginError;
use crate::config::ConfigError;
use crate::contexts::ContextsError;
use crate::mcp_clients::SettingsError;
use crate::shell::quote;
use crate::view;

type BoxError = Box<dyn Error + Send + Sync>;

/// The exit codes of commands. They are documented in `docs/cli.md` and never change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Any other failure.
    Failed = 1,
    /// An option, an argument or the configuration is invalid.
    Usage = 2,
    /// The resource was not found.
    NotFound = 3,
    /// A conflict: already exists, changed in the meantime, or disabled.
    Conflict = 4,
    /// The call failed while the tool ran.
    CallFailed = 5,
    /// The server is unreachable, or the home folder cannot be opened.
    Unreachable = 6,
    /// The token is missing, invalid or not permitted.
    Denied = 7,
    /// The server rejected the definition or the arguments.
    Invalid = 8,
    /// A rate limit is exceeded or the server is overloaded; a later retry may succeed.
    Busy = 9,
    /// The tool was not run: something that it needs is missing on the server.
    NotRun = 10,
    /// `haft diff` found changes.
    Differences = 11,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An error response of the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ApiError {
    /// The HTTP status.
    pub(crate) status: u16,
    /// The stable code, such as `not_found`.
    pub(crate) code: String,
    /// The message.
    pub(crate) message: String,
    /// Machine-readable details.
    pub(crate) details: Value,
    /// The id of the request in the server log.
    pub(crate) request_id: Option<String>,
    /// The tool that the request was about, for the hint.
    pub(crate) tool: Option<String>,
}

impl ApiError {
    /// Creates an error that the command detects itself, with the code that the server would use.
    pub(crate) fn local(status: u16, code: &str, message: String) -> Self {
        let (code, details) = (code.to_owned(), Value::Null);
        Self { status, code, message, details, request_id: None, tool: None }
    }
}

/// An error of a command.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The stored logins cannot be used.
    #[error(transparent)]
    Contexts(#[from] ContextsError),
    /// The configuration of an MCP client cannot be read or changed.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A login was not approved.
    #[error(transparent)]
    DeviceLogin(#[from] DeviceLoginError),
    /// The arguments are invalid.
    #[error("{message}")]
    Usage {
        /// What is invalid.
        message: String,
        /// How to fix it.
        hint: Option<String>,
    },
    /// The server returned an error.
    #[error("{}", .0.message)]
    Api(Box<ApiError>),
    /// The call failed; with `--json` the outcome was printed as data.
    #[error("{}{message}", if code == "approval_required" { "" } else { "the call failed: " })]
    CallFailed {
        /// The stable code.
        code: String,
        /// The message.
        message: String,
        /// Machine-readable details.
        details: Value,
    },
    /// The run of an agent failed or was stopped; with `--json` the run was printed as data.
    #[error("{}{message}", if matches!(code.as_str(), "approval_required" | "cancelled") { "" } else { "the run failed: " })]
    RunFailed {
        /// The stable code.
        code: String,
        /// The message.
        message: String,
    },
    /// The definition is invalid; the problems were printed as data.
    #[error("`{0}` is not valid")]
    Invalid(String),
    /// Every operation of a document was skipped; the reasons were printed as data.
    #[error(
        "no tools were imported: {} skipped: {reason}{}",
        if *operations == 1 { "the operation was".to_owned() } else { format!("all {operations} operations were") },
        match others { 0 => String::new(), 1 => ", and one other reason".to_owned(), n => format!(", and {n} other reasons") }
    )]
    NothingImported {
        /// The number of operations.
        operations: usize,
        /// The most frequent reason.
        reason: String,
        /// The number of other reasons.
        others: usize,
    },
    /// Some of several items failed; the reasons were printed as data.
    #[error("{failed} of {total} {items}")]
    SomeFailed {
        /// The number of failed items.
        failed: usize,
        /// The number of items.
        total: usize,
        /// What failed, such as "servers were not added".
        items: &'static str,
    },
    /// An MCP server was added, but its tools could not be loaded.
    #[error("{error}")]
    NotConnected {
        /// The cause.
        error: Box<CliError>,
        /// The id of the server.
        id: String,
    },
    /// `haft diff` found changes, which were printed as data. Not a failure, so nothing is reported.
    #[error("the installation differs from the folder")]
    Differences,
    /// Checks of `haft doctor` failed; they were printed as data.
    #[error("{failed} {} failed", if *failed == 1 { "check" } else { "checks" })]
    Unhealthy {
        /// The number of failed checks.
        failed: usize,
    },
    /// The server is unreachable.
    #[error("cannot connect to {url}")]
    Unreachable {
        /// The URL of the server.
        url: String,
        /// The cause.
        source: BoxError,
    },
    /// The URL has the scheme `https`, but the server speaks plain HTTP.
    #[error("the server at {address} speaks http, not https")]
    WrongScheme {
        /// Host and port of the server.
        address: String,
    },
    /// A request to the router in this process failed.
    #[error("the request failed")]
    LocalRequest {
        /// The cause.
        source: BoxError,
    },
    /// The database is unreachable.
    #[error("cannot connect to PostgreSQL at {address}")]
    Database {
        /// Host and port of the database.
        address: String,
        /// The cause.
        source: BoxError,
    },
    /// The response is not one of a haft server.
    #[error("invalid response from {url} (HTTP {status})")]
    InvalidResponse {
        /// The URL of the server.
        url: String,
        /// The HTTP status.
        status: u16,
    },
    /// A response lacks a field, or the field has another type.
    #[error("cannot read the response{}: {error}; client and server have different versions", if path == "." { String::new() } else { format!(" at `{path}`") })]
    UnreadableResponse {
        /// The path of the field, such as `tokens[0].name`; `.` is the whole response.
        path: String,
        /// The cause.
        error: serde_json::Error,
    },
    /// The home folder cannot be opened.
    #[error("cannot open the home folder `{}`", home.display())]
    Open {
        /// The folder.
        home: PathBuf,
        /// The cause.
        source: BoxError,
    },
    /// The address is in use or not available.
    #[error("cannot listen on `{addr}`")]
    Listen {
        /// The address.
        addr: std::net::SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// Another server uses this home folder.
    #[error("a server is already running for `{}` at http://{addr}", home.display())]
    AlreadyServing {
        /// The folder.
        home: std::path::PathBuf,
        /// The address of the other server.
        addr: std::net::SocketAddr,
    },
    /// `HAFT_TOKEN` is too short for a server that other machines can reach.
    #[error(
        "`HAFT_TOKEN` has {length} characters; a server that other machines can reach needs at least {minimum}"
    )]
    ShortToken {
        /// The length of the token.
        length: usize,
        /// The minimum.
        minimum: usize,
    },
    /// No token for a server.
    #[error("no token for the server at {0}")]
    NoToken(String),
    /// Reading or writing failed.
    #[error("cannot {action}")]
    Io {
        /// What failed.
        action: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The editor failed.
    #[error("the editor `{editor}` failed: {status}")]
    Editor {
        /// The command.
        editor: String,
        /// The exit status.
        status: std::process::ExitStatus,
    },
    /// An edited text was not stored; it is kept in a file.
    #[error("{error}")]
    EditNotStored {
        /// The cause.
        error: Box<CliError>,
        /// The file with the text.
        path: PathBuf,
        /// The command that stores a text, without its options.
        command: String,
    },
}

impl CliError {
    /// Creates a usage error without a hint.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: None }
    }

    /// Wraps an I/O error; the message reads "cannot {action}".
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let action = action.into();
        move |source| Self::Io { action, source }
    }

    /// Wraps a connection error. A TLS handshake with a server that speaks plain HTTP is reported as such.
    pub(crate) fn unreachable(url: &Url, source: BoxError) -> Self {
        let plain_http =
            causes(&*source).any(|cause| matches!(tls_error(cause), Some(rustls::Error::InvalidMessage(_))));
        if plain_http {
            return Self::WrongScheme { address: url.authority().to_owned() };
        }
        Self::Unreachable { url: url.as_str().trim_end_matches('/').to_owned(), source }
    }

    /// Returns whether the reader of our output closed it, which is not an error.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == ErrorKind::BrokenPipe)
    }

    /// Adds the tool that the request was about.
    pub(crate) fn about_tool(mut self, tool: &str) -> Self {
        if let Self::Api(error) = &mut self {
            error.tool = Some(tool.to_owned());
        }
        self
    }

    /// Returns the exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Config(_) | Self::Usage { .. } | Self::ShortToken { .. } => Exit::Usage,
            Self::Api(error) => exit_of(&error.code).unwrap_or_else(|| status_exit(error.status)),
            Self::CallFailed { code, .. } | Self::RunFailed { code, .. } => {
                exit_of(code).unwrap_or(Exit::CallFailed)
            }
            Self::Invalid(_) | Self::NothingImported { .. } | Self::SomeFailed { .. } => Exit::Invalid,
            Self::Unreachable { .. }
            | Self::WrongScheme { .. }
            | Self::LocalRequest { .. }
            | Self::Database { .. }
            | Self::InvalidResponse { .. }
            | Self::UnreadableResponse { .. }
            | Self::Open { .. } => Exit::Unreachable,
            Self::NoToken(_) | Self::DeviceLogin(_) => Exit::Denied,
            Self::Contexts(error) => contexts_exit(error),
            Self::Differences => Exit::Differences,
            Self::AlreadyServing { .. }
            | Self::Listen { .. }
            | Self::Io { .. }
            | Self::Settings(_)
            | Self::Editor { .. }
            | Self::Unhealthy { .. } => Exit::Failed,
            Self::EditNotStored { error, .. } | Self::NotConnected { error, .. } => error.exit(),
        }
    }

    /// Returns a hint, if there is one.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => error.hint(),
            Self::Contexts(error) => error.hint(),
            Self::Settings(SettingsError::Unsupported { .. }) => {
                Some("change it by hand: `--print` prints the entry".to_owned())
            }
            Self::DeviceLogin(_) => Some("run `haft login` again".to_owned()),
            Self::Api(error) => api_hint(error),
            Self::Usage { hint, .. } => hint.clone(),
            Self::UnreadableResponse { .. } => Some(
                "use the version of haft that the server has; `--json` prints the response as it is"
                    .to_owned(),
            ),
            Self::Unreachable { .. } => {
                Some("start the server with `haft serve`, or pass `--server URL`".to_owned())
            }
            Self::WrongScheme { address } => Some(format!("use `http://{address}`")),
            Self::Database { .. } => {
                let hint = "check that PostgreSQL is running there, and `database_url` in haft.toml or `HAFT_DATABASE_URL`";
                Some(hint.to_owned())
            }
            Self::InvalidResponse { .. } => Some("check that the URL is that of a haft server".to_owned()),
            Self::Open { home, source } => Some(open_hint(home, &**source)),
            Self::Listen { source, .. } if source.kind() == ErrorKind::AddrInUse => {
                Some("the address is in use; choose another one with `--addr HOST:PORT`".to_owned())
            }
            Self::ShortToken { .. } => {
                Some("make one with `openssl rand -hex 32`, or listen on 127.0.0.1".to_owned())
            }
            Self::AlreadyServing { .. } => {
                Some("stop that server, or choose another home folder with `--home`".to_owned())
            }
            Self::NoToken(_) => {
                Some("log in with `haft login URL`, or pass one with `--token` or `HAFT_TOKEN`".to_owned())
            }
            Self::EditNotStored { path, command, .. } => {
                let (path, argument) = (path.display(), quote(&path.display().to_string()));
                Some(format!("the text is kept in `{path}`; continue with `{command} --from {argument}`"))
            }
            Self::NotConnected { id, .. } => Some(format!(
                "the server was added all the same; fix the cause and run `haft mcp-server refresh {id}`, or remove \
                 it with `haft mcp-server rm {id}`"
            )),
            Self::CallFailed { code, .. } if code == "egress_refused" => Some(
                "the setting is in `haft.toml` in the home folder; restart the server after a change"
                    .to_owned(),
            ),
            Self::LocalRequest { .. }
            | Self::CallFailed { .. }
            | Self::RunFailed { .. }
            | Self::Invalid(_)
            | Self::NothingImported { .. }
            | Self::SomeFailed { .. }
            | Self::Differences
            | Self::Unhealthy { .. }
            | Self::Listen { .. }
            | Self::Io { .. }
            | Self::Settings(_)
            | Self::Editor { .. } => None,
        }
    }

    /// Returns the text for people: the error, its causes, problems, details and a hint.
    pub(crate) fn text(&self) -> String {
        let problems = self.problems();
        let mut text = match self {
            // The message joins the problems; each of them is easier to read on its own line.
            Self::Api(error) if problems.len() > 1 && error.message == join(&problems) => {
                format!("{} problems:", problems.len())
            }
            _ => excerpt_lines(&self.message()),
        };
        for problem in problems {
            let line = excerpt(&problem.to_string(), 400);
            if !text.contains(&line) {
                let _ = write!(text, "\n  {line}");
            }
        }
        for row in self.rows() {
            let _ = write!(text, "\n  {}", excerpt(&row, 400));
        }
        for warning in self.warnings() {
            let _ = write!(text, "\n  warning: {}", excerpt(&warning.to_string(), 400));
        }
        if let Some(body) = self.response_body() {
            let _ = write!(text, "\n  response: {body}");
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

    /// Returns the JSON for programs.
    pub(crate) fn json(&self) -> Value {
        let (code, details) = match self {
            Self::Api(error) => (error.code.clone(), error.details.clone()),
            Self::CallFailed { code, details, .. } => (code.clone(), details.clone()),
            Self::RunFailed { code, .. } => (code.clone(), Value::Null),
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

    /// Returns the error and its causes. Of a connection error only the root cause is shown.
    pub(crate) fn message(&self) -> String {
        let mut text = self.to_string();
        match self {
            Self::Unreachable { source, .. } | Self::Database { source, .. } => {
                let _ = write!(text, ": {}", root_cause(&**source));
            }
            _ => {
                for cause in self.source().into_iter().flat_map(causes) {
                    let _ = write!(text, ": {cause}");
                }
            }
        }
        text
    }

    /// Returns the problems in the details of a response.
    fn problems(&self) -> Vec<Problem> {
        let Self::Api(error) = self else { return Vec::new() };
        let listed = ["errors", "problems", "violations"].iter().find_map(|key| error.details.get(key));
        problems_in(listed.unwrap_or(&error.details))
    }

    /// Returns the invalid rows in the details of a response.
    fn rows(&self) -> Vec<String> {
        let Self::Api(error) = self else { return Vec::new() };
        let rows = error.details.get("rows").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let text = |row: &Value| {
            let [line, tool, reason] = ["line", "tool", "reason"].map(|key| view::text(row, key));
            let tool = if tool.is_empty() { tool } else { format!("`{tool}`: ") };
            format!("line {line}: {tool}{reason}")
        };
        rows.iter().take(MAX_PROBLEMS).map(text).collect()
    }

    /// Returns the warnings in the details of a response.
    fn warnings(&self) -> Vec<Problem> {
        let Self::Api(error) = self else { return Vec::new() };
        error.details.get("warnings").map(problems_in).unwrap_or_default()
    }

    /// Returns the beginning of the response that a failed HTTP tool received.
    fn response_body(&self) -> Option<String> {
        let Self::CallFailed { details, .. } = self else { return None };
        let body = details.get("body").and_then(Value::as_str)?.trim();
        (!body.is_empty()).then(|| excerpt(body, MAX_BODY_CHARACTERS))
    }
}

/// The part of a response that is shown to people.
const MAX_BODY_CHARACTERS: usize = 500;
/// The maximum number of problems that are shown to people.
const MAX_PROBLEMS: usize = 20;

fn problems_in(list: &Value) -> Vec<Problem> {
    let items = list.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().take(MAX_PROBLEMS).filter_map(|item| serde_json::from_value(item.clone()).ok()).collect()
}

impl Exit {
    /// Returns the code in the JSON for programs.
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
            Exit::Busy => "busy",
            Exit::NotRun => "not_run",
            Exit::Differences => "differences",
        }
    }
}

const fn contexts_exit(error: &ContextsError) -> Exit {
    match error {
        ContextsError::Unknown(_) => Exit::NotFound,
        ContextsError::Io { .. } => Exit::Failed,
        ContextsError::NoFolder | ContextsError::Invalid { .. } | ContextsError::Newer { .. } => Exit::Usage,
    }
}

/// Returns the exit code of an error code; `None` if the code is unknown.
fn exit_of(code: &str) -> Option<Exit> {
    serde_json::from_value(Value::from(code)).ok().map(code_exit)
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
        | ErrorCode::ApprovalRequired
        | ErrorCode::CredentialRequired
        | ErrorCode::ApprovalDenied
        | ErrorCode::ApprovalExpired => Exit::Denied,
        ErrorCode::NotFound => Exit::NotFound,
        ErrorCode::AmbiguousName
        | ErrorCode::Conflict
        | ErrorCode::IdempotencyConflict
        | ErrorCode::ReadOnly
        | ErrorCode::Disabled
        | ErrorCode::NotPublished
        | ErrorCode::Removed
        | ErrorCode::NotReady => Exit::Conflict,
        ErrorCode::Overloaded | ErrorCode::RateLimited => Exit::Busy,
        ErrorCode::StoreUnavailable => Exit::Unreachable,
        ErrorCode::SecretMissing | ErrorCode::SandboxUnavailable | ErrorCode::TooDeep => Exit::NotRun,
        ErrorCode::Timeout
        | ErrorCode::Cancelled
        | ErrorCode::Interrupted
        | ErrorCode::Template
        | ErrorCode::PathEscapes
        | ErrorCode::EgressRefused
        | ErrorCode::Network
        | ErrorCode::HttpStatus
        | ErrorCode::InvalidResponse
        | ErrorCode::InvalidOutput
        | ErrorCode::ExecutionFailed
        | ErrorCode::Panicked
        | ErrorCode::ModelError
        | ErrorCode::BudgetExceeded => Exit::CallFailed,
        ErrorCode::MethodNotAllowed | ErrorCode::Internal => Exit::Failed,
    }
}

const fn status_exit(status: u16) -> Exit {
    match status {
        400 | 413 | 415 | 422 => Exit::Invalid,
        401 | 403 => Exit::Denied,
        404 => Exit::NotFound,
        409 | 412 => Exit::Conflict,
        429 => Exit::Busy,
        502..=504 => Exit::Unreachable,
        _ => Exit::Failed,
    }
}

/// Returns the hint for a home folder that cannot be opened.
fn open_hint(home: &std::path::Path, source: &(dyn Error + 'static)) -> String {
    let text = causes(source).map(ToString::to_string).collect::<Vec<_>>().join(": ");
    let is_any = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if is_any(&["file is not a database", "disk image is malformed"]) {
        return format!(
            "restore a backup of `{database}`, or move it away and run `haft reindex`; status, calls and secrets are then lost",
            database = home.join("haft.db").display()
        );
    }
    if is_any(&["No space left on device", "no space left on device", "disk is full"]) {
        return format!("the disk of `{}` is full; free some space and try again", home.display());
    }
    "check the home folder with `haft doctor`".to_owned()
}

fn api_hint(error: &ApiError) -> Option<String> {
    let tool = error.tool.as_deref().map_or_else(|| "TOOL".to_owned(), quote);
    Some(match error.code.as_str() {
        "unauthorized" => {
            "pass a valid token with `--token` or `HAFT_TOKEN`, or log in with `haft login URL`".to_owned()
        }
        "not_found" if is_missing_tool(error) => match error.details.get("nearest").and_then(Value::as_str) {
            Some(nearest) => format!("did you mean `{nearest}`? List the tools with `haft tool list`"),
            None => "list the tools with `haft tool list`".to_owned(),
        },
        "not_found" if is_kind(error, "route") => {
            "check the URL in `--server`; the server may also have another version".to_owned()
        }
        "not_found" if is_kind(error, "workspace") => {
            "list the workspaces with `haft workspace ls`".to_owned()
        }
        "not_found" if is_kind(error, "file") => "list the files with `haft workspace ls NAME`".to_owned(),
        "not_found" if is_kind(error, "person") => "list the people with `haft person list`".to_owned(),
        "not_found" if is_kind(error, "group") => "list the groups with `haft group list`".to_owned(),
        "ambiguous_name" => "add the bundle, as in `bundle:name`".to_owned(),
        "not_published" if error.message.starts_with("agent ") => {
            let agent = error.message.split('`').nth(1).unwrap_or("AGENT");
            format!("publish it with `haft agent publish {agent}`, or use `--mode debug`")
        }
        "not_published" => {
            format!("publish it with `haft tool publish {tool}`, or call it with `--mode debug`")
        }
        "conflict" if error.message.contains("` already exists") && error.tool.is_some() => {
            format!("change it with `haft tool edit {tool}`, or delete it with `haft tool rm {tool}`")
        }
        "invalid_arguments" => format!("show the arguments with `haft tool show {tool}`"),
        "approval_required" => format!(
            "use a token from `haft token create NAME --role caller --elevated`, or try it with `haft tool test {tool}`"
        ),
        _ => return None,
    })
}

/// Returns whether the server did not find a tool.
pub(crate) fn is_missing_tool(error: &ApiError) -> bool {
    error.code == "not_found" && is_kind(error, "tool")
}

fn is_kind(error: &ApiError, kind: &str) -> bool {
    error.details.get("kind").is_some_and(|found| found == kind)
}

/// Returns an error and its causes, outermost first.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let current = next?;
        next = current.source();
        Some(current)
    })
}

/// Returns the TLS error inside an I/O error, which may be inside another one.
fn tls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = error.downcast_ref::<std::io::Error>()?.get_ref()?;
    inner.downcast_ref().or_else(|| tls_error(inner))
}

/// Returns the innermost cause; common connection errors in plain words.
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let kind = causes(error)
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>())
        .last()
        .map(std::io::Error::kind);
    match kind {
        Some(ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(ErrorKind::ConnectionReset) => "connection reset".to_owned(),
        Some(ErrorKind::TimedOut) => "connection timed out".to_owned(),
        _ => causes(error).last().map(ToString::to_string).unwrap_or_default(),
    }
}

/// Replaces control characters and shortens long lines.
fn excerpt_lines(text: &str) -> String {
    text.lines().map(|line| excerpt(line, 2000)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
#[path = "error_tests.rs"]
mod tests;
