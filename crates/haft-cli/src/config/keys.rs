//! The one table of everything that can be configured.

use std::net::SocketAddr;
use std::path::PathBuf;

use haft_core::mcp::McpServer;
use haft_core::runnable::Mode;
use haft_core::secret::Secret;
use haft_server::settings::{EngineName, Settings, check_host};
use tracing_subscriber::EnvFilter;

use super::value::{Value, Wrong};

/// The settings, and what belongs to the command line alone.
#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    /// What the server is told.
    pub(crate) settings: Settings,
    /// How to log.
    pub(crate) log: LogSettings,
    /// Names of variables that `${NAME}` may read.
    pub(super) secret_names: Vec<String>,
    /// The MCP servers that the file declares.
    pub(super) mcp_servers: Vec<McpServer>,
    /// What is odd, but no error.
    pub(crate) warnings: Vec<String>,
}

/// How to log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogSettings {
    /// A filter such as `info` or `haft_server=debug,warn`.
    pub(crate) level: String,
    /// Lines for people or for programs.
    pub(crate) format: LogFormat,
}

/// The form of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object per line.
    Json,
}

impl Resolved {
    /// Returns the settings where nothing is configured.
    pub(super) fn new(settings: Settings) -> Self {
        let log = LogSettings { level: "info".to_owned(), format: LogFormat::Text };
        Self { settings, log, secret_names: Vec::new(), mcp_servers: Vec::new(), warnings: Vec::new() }
    }
}

/// Something that can be configured.
pub(crate) struct Key {
    /// The section, if it has one, and the name: `addr`, `server.max_body_bytes`.
    pub(crate) full: &'static str,
    /// The default, spelled as in the file.
    pub(crate) default: &'static str,
    /// What it means.
    pub(crate) help: &'static str,
    /// Enters a value into the settings.
    pub(super) set: Setter,
}

impl Key {
    /// Returns the section of the file; empty at its top.
    pub(crate) fn section(&self) -> &'static str {
        self.full.split_once('.').map_or("", |(section, _)| section)
    }

    /// Returns the name within the section.
    pub(crate) fn name(&self) -> &'static str {
        self.full.split_once('.').map_or(self.full, |(_, name)| name)
    }

    /// Returns the name of the environment variable.
    pub(crate) fn variable(&self) -> String {
        format!("HAFT_{}", self.full.replace('.', "_").to_uppercase())
    }

    /// Tells whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.default.starts_with('[')
    }
}

/// Variables that are no keys of the file.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("HAFT_HOME", "The home folder; `~/.haft` where it is not set"),
    ("HAFT_TOKEN", "The admin token of the server, and the token that commands use"),
    ("HAFT_KEY", "The key of the stored credentials, in place of the file `key`"),
    ("HAFT_SERVER", "The address of a running server that commands talk to, as in `http://127.0.0.1:18789`"),
    ("HAFT_LOG", "Short for `HAFT_LOG_LEVEL`"),
];

type Setter = fn(&mut Resolved, &Value) -> Result<(), Wrong>;

const fn key(full: &'static str, default: &'static str, help: &'static str, set: Setter) -> Key {
    Key { full, default, help, set }
}

/// Everything that can be configured, in the order of the sample file.
pub(crate) const KEYS: &[Key] = &[
    key("addr", "\"127.0.0.1:18789\"", "Where the server listens.", |to, value| {
        value.addr().map(|addr: SocketAddr| to.settings.addr = addr)
    }),
    key(
        "mode",
        "\"debug\"",
        "The mode of calls that name none: `debug` runs the newest revision, `production` only published ones.",
        |to, value| {
            let choices = [("debug", Mode::Debug), ("production", Mode::Production)];
            value.choice(&choices).map(|mode| to.settings.mode = mode)
        },
    ),
    key(
        "database_url",
        "\"\"",
        "A PostgreSQL, as in `postgres://user@host/database`; empty means the SQLite file of the home folder.",
        set_database,
    ),
    key("server.max_body_bytes", "8388608", "The largest request body in bytes.", |to, value| {
        value.size(1024..=1 << 30).map(|size| to.settings.server.max_body_bytes = size)
    }),
    key(
        "server.max_running_calls",
        "1024",
        "The most calls that run at once; further ones are refused.",
        |to, value| value.size(1..=1_000_000).map(|size| to.settings.server.max_running_calls = size),
    ),
    key(
        "server.cors_origins",
        "[]",
        "Origins that browsers may call from, as in `https://app.example.com`; `*` is every origin.",
        |to, value| value.origins().map(|list| to.settings.server.cors_origins = list),
    ),
    key(
        "server.shutdown_grace",
        "\"30s\"",
        "How long running calls may still take after a stop signal.",
        |to, value| value.duration().map(|time| to.settings.server.shutdown_grace = time),
    ),
    key(
        "import.max_document_bytes",
        "33554432",
        "The largest API description in bytes that is imported.",
        |to, value| value.size(1024..=1 << 30).map(|size| to.settings.import.max_document_bytes = size),
    ),
    key(
        "mcp.allowed_hosts",
        "[]",
        "Names that MCP clients may reach the server by, as in `tools.example.com`, besides addresses and `localhost`; `*` is every name.",
        |to, value| value.list().map(|list| to.settings.mcp.allowed_hosts = list),
    ),
    key(
        "mcp.public_url",
        "\"\"",
        "The address that MCP clients know the server by, as in `https://tools.example.com`; empty means the one that a request names.",
        set_public_url,
    ),
    key(
        "mcp.compact_above",
        "100",
        "With more tools than this, MCP clients are listed `search_tools`, `call_tool` and what was found, not everything.",
        |to, value| value.size(1..=1_000_000).map(|most| to.settings.mcp.compact_above = most),
    ),
    key(
        "mcp.compact_above_tokens",
        "32000",
        "So are they with definitions of more tokens than this, as far as that can be estimated.",
        |to, value| value.size(1..=1_000_000_000).map(|most| to.settings.mcp.compact_above_tokens = most),
    ),
    key(
        "egress.allowed_hosts",
        "[]",
        "Hosts that tools may connect to, as in `api.example.com` or `*.example.com`; empty means every public host.",
        |to, value| hosts(value).map(|list| to.settings.egress.allowed_hosts = list),
    ),
    key(
        "egress.private_hosts",
        "[]",
        "Hosts, addresses or networks that may be private or loopback, as in `localhost` or `10.0.0.0/8`.",
        |to, value| hosts(value).map(|list| to.settings.egress.private_hosts = list),
    ),
    key(
        "files.sandboxes",
        "[]",
        "Folders that file tools may use, as in `workspace=/srv/workspace`, the first one being the default; empty means `workspace` in the home folder.",
        set_sandboxes,
    ),
    key("files.read_only", "[]", "Names of those folders in which tools may change nothing.", |to, value| {
        value.list().map(|list| to.settings.files.read_only = list)
    }),
    key(
        "secrets.environment",
        "[]",
        "Names of environment variables that `${NAME}` in a tool may read where no credential is stored.",
        |to, value| value.list().map(|list| to.secret_names = list),
    ),
    key(
        "built_ins.enabled",
        "true",
        "Whether the tools that come with haft are there, such as `read_file` and `web_search`.",
        |to, value| value.switch().map(|on| to.settings.built_ins.enabled = on),
    ),
    key(
        "built_ins.emails_per_minute",
        "10",
        "How many messages the tool `send_email` sends in a minute at most; 0 is as many as one likes.",
        |to, value| {
            let most = value.number(0..=1_000_000)?;
            to.settings.built_ins.emails_per_minute = u32::try_from(most).unwrap_or(u32::MAX);
            Ok(())
        },
    ),
    key(
        "ledger.sync",
        "\"disk\"",
        "When a call counts as recorded: `disk` waits for the disk, `os` for the operating system only.",
        |to, value| {
            let choices = [("disk", true), ("os", false)];
            value.choice(&choices).map(|disk| to.settings.ledger.sync_to_disk = disk)
        },
    ),
    key("ledger.keep_days", "30", "How many days calls are kept; 0 is for ever.", |to, value| {
        days(value).map(|days| to.settings.ledger.keep_days = days)
    }),
    key(
        "ledger.keep_calls",
        "5000000",
        "The most calls that are kept of a tenant; 0 is all.",
        |to, value| number(value).map(|most| to.settings.retention.calls = most),
    ),
    key(
        "audit.keep_days",
        "365",
        "How many days records of changes are kept; 0 is for ever.",
        |to, value| days(value).map(|days| to.settings.retention.audit_days = days),
    ),
    key(
        "audit.keep_records",
        "1000000",
        "The most records of changes that are kept; 0 is all.",
        |to, value| number(value).map(|most| to.settings.retention.audit_records = most),
    ),
    key(
        "history.keep_days",
        "90",
        "How many days replaced and deleted definitions stay in `tool-history`; 0 is for ever.",
        |to, value| days(value).map(|days| to.settings.retention.history_days = days),
    ),
    key(
        "history.keep_copies",
        "20",
        "The most copies of one definition file that stay in `tool-history`; 0 is all.",
        |to, value| number(value).map(|most| to.settings.retention.history_copies = most),
    ),
    key(
        "sandbox.engine",
        "\"bubblewrap\"",
        "What confines the processes of tools: `bubblewrap`, `landlock`, `docker` or `podman`.",
        |to, value| {
            let choices = EngineName::ALL.map(|engine| (engine.as_str(), engine));
            value.choice(&choices).map(|engine| to.settings.sandbox.engine = engine)
        },
    ),
    key(
        "sandbox.image",
        "\"\"",
        "The image in which `docker` and `podman` run tools, where a tool names none.",
        |to, value| {
            let image = value.text()?;
            if !image.is_empty() && !haft_definition::check::is_image_name(image) {
                return Err(Wrong("is not the name of a container image".to_owned()));
            }
            to.settings.sandbox.image = (!image.is_empty()).then(|| image.to_owned());
            Ok(())
        },
    ),
    key(
        "sandbox.read_only",
        "[]",
        "Further folders that tools with `sandbox: true` may read, as in `/opt/models`.",
        |to, value| {
            let folders = value.list()?;
            if let Some(relative) = folders.iter().find(|folder| !folder.starts_with('/')) {
                return Err(Wrong(format!("has `{relative}`, which does not begin with a slash")));
            }
            to.settings.sandbox.read_only = folders.into_iter().map(Into::into).collect();
            Ok(())
        },
    ),
    key(
        "sandbox.path",
        "\"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\"",
        "Where tools find programs.",
        |to, value| {
            value.text()?.clone_into(&mut to.settings.sandbox.processes.path);
            Ok(())
        },
    ),
    key(
        "sandbox.at_once",
        "64",
        "The most processes of tools at once; further calls wait. One caller has at most three quarters of them.",
        |to, value| value.size(1..=100_000).map(|most| to.settings.sandbox.processes.at_once = most),
    ),
    key("sandbox.memory_bytes", "536870912", "The memory of one tool's processes.", |to, value| {
        value.number(8 << 20..=1 << 40).map(|bytes| to.settings.sandbox.processes.limits.memory = bytes)
    }),
    key("sandbox.processes", "128", "The processes and threads of one tool.", |to, value| {
        let most = value.number(8..=100_000)?;
        to.settings.sandbox.processes.limits.processes = u32::try_from(most).unwrap_or(u32::MAX);
        Ok(())
    }),
    key("sandbox.file_bytes", "67108864", "The size of one file that a tool writes.", |to, value| {
        value.number(1 << 16..=1 << 40).map(|bytes| to.settings.sandbox.processes.limits.file_size = bytes)
    }),
    key("sandbox.work_bytes", "134217728", "The size of a tool's private folders.", |to, value| {
        value.number(1 << 16..=1 << 40).map(|bytes| to.settings.sandbox.processes.limits.work = bytes)
    }),
    key("wasm.at_once", "256", "The most calls of `wasm` tools at once; further ones wait.", |to, value| {
        let most = value.number(1..=10_000)?;
        to.settings.wasm.at_once = u32::try_from(most).unwrap_or(u32::MAX);
        Ok(())
    }),
    key("wasm.memory_bytes", "268435456", "The memory of one call of a `wasm` tool.", |to, value| {
        value.number(1 << 16..=1 << 32).map(|bytes| to.settings.wasm.memory_bytes = bytes)
    }),
    key(
        "wasm.total_memory_bytes",
        "1073741824",
        "The memory of all calls of `wasm` tools together; a call that needs more than is left is refused.",
        |to, value| value.number(1 << 16..=1 << 40).map(|bytes| to.settings.wasm.total_memory_bytes = bytes),
    ),
    key(
        "log.level",
        "\"info\"",
        "What is logged: `error`, `warn`, `info`, `debug`, `trace`, or a filter such as `haft_server=debug,warn`.",
        set_level,
    ),
    key("log.format", "\"text\"", "`text` for people, `json` for programs.", |to, value| {
        let choices = [("text", LogFormat::Text), ("json", LogFormat::Json)];
        value.choice(&choices).map(|format| to.log.format = format)
    }),
];

/// Reads how long something is kept.
fn days(value: &Value) -> Result<u32, Wrong> {
    value.number(0..=36_500).map(|days| u32::try_from(days).unwrap_or(u32::MAX))
}

/// Reads how much of something is kept.
fn number(value: &Value) -> Result<u32, Wrong> {
    value.number(0..=1_000_000_000).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn hosts(value: &Value) -> Result<Vec<String>, Wrong> {
    let hosts = value.list()?;
    for host in &hosts {
        check_host(host).map_err(|why| Wrong(format!("has `{host}`, which is not a host pattern: {why}")))?;
    }
    Ok(hosts)
}

fn set_database(to: &mut Resolved, value: &Value) -> Result<(), Wrong> {
    let text = value.text()?;
    if !text.is_empty() && !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
        return Err(Wrong("must be empty or start with `postgres://`".to_owned()));
    }
    to.settings.database_url = (!text.is_empty()).then(|| Secret::new(text.to_owned()));
    Ok(())
}

fn set_public_url(to: &mut Resolved, value: &Value) -> Result<(), Wrong> {
    let text = value.text()?;
    let is_url = |text: &str| {
        let url = url::Url::parse(text).ok();
        url.is_some_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
    };
    if !text.is_empty() && !is_url(text) {
        return Err(Wrong("must be empty or an address like `https://tools.example.com`".to_owned()));
    }
    to.settings.mcp.public_url = (!text.is_empty()).then(|| text.to_owned());
    Ok(())
}

fn set_sandboxes(to: &mut Resolved, value: &Value) -> Result<(), Wrong> {
    let wrong = || {
        Wrong("must be a list of names and absolute paths, as in [\"workspace=/srv/workspace\"]".to_owned())
    };
    let one = |text: String| {
        let (name, path) = text.split_once('=')?;
        let path = PathBuf::from(path.trim());
        path.is_absolute().then(|| (name.trim().to_owned(), path))
    };
    let list = value.list().map_err(|_| wrong())?;
    to.settings.files.sandboxes = list.into_iter().map(one).collect::<Option<_>>().ok_or_else(wrong)?;
    Ok(())
}

fn set_level(to: &mut Resolved, value: &Value) -> Result<(), Wrong> {
    let text = value.text()?;
    // A single word that is no level would be taken for the name of a module, and nothing else be logged.
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    if !text.contains(['=', ',', ':']) && !levels.contains(&text.to_lowercase().as_str()) {
        return Err(Wrong(format!("is no level; write one of `{}`, or a filter", levels.join("`, `"))));
    }
    EnvFilter::try_new(text).map_err(|error| Wrong(format!("is no log filter: {error}")))?;
    text.clone_into(&mut to.log.level);
    Ok(())
}
