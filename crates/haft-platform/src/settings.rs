//! The settings of a server. Reading them from files, flags or the environment is up to the caller.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use haft_agent::model::Prices;
pub use haft_builtins::VARIABLES as BUILT_IN_VARIABLES;
use haft_core::mcp::McpServer;
use haft_core::runnable::Mode;
use haft_core::secret::Secret;
use haft_core::token::Role;
pub use haft_executors::egress::check_host;
pub use haft_executors::process::ProcessSettings;
pub use haft_executors::python::PythonSettings;
pub use haft_executors::secret_sources::{
    SecretCommandSettings, SecretFileSettings, SecretSourceSettings, VaultAuth, VaultSettings,
};
use haft_package::signature::TrustedKey;
pub use haft_sandbox::EngineName;
pub use haft_store::{BlobSettings, LedgerSync, Retention};
pub use haft_wasm::WasmLimits;
use serde::Serialize;
use serde_json::Value;

pub use crate::issuers::{IssuerSettings, SignOnSettings, declared as declared_issuer};
pub use crate::mcp_definition::declared as declared_mcp_server;
pub use crate::secret_command::{DeclaredSecretCommand, declared as declared_secret_command};

/// All settings.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The home folder, which holds all data unless a database is configured.
    pub home: PathBuf,
    /// The address to listen on.
    pub addr: SocketAddr,
    /// The default mode of calls.
    pub mode: Mode,
    /// A PostgreSQL URL; `None` uses the SQLite file in the home folder.
    pub database_url: Option<Secret>,
    /// Where large results and, with a bucket, the states of workspaces are stored.
    pub blobs: BlobSettings,
    /// Results of calls.
    pub results: ResultSettings,
    /// An admin token; `None` uses the local token in the home folder.
    pub token: Option<Secret>,
    /// The encryption key of stored credentials; `None` uses the key file in the home folder.
    pub key: Option<Secret>,
    /// The key that a rotation changes to; either key is accepted meanwhile.
    pub new_key: Option<Secret>,
    /// The HTTP server.
    pub server: ServerSettings,
    /// Imports of API descriptions.
    pub import: ImportSettings,
    /// The MCP server.
    pub mcp: McpSettings,
    /// The issuers where people log in.
    pub sign_on: SignOnSettings,
    /// Applications that people connect.
    pub oauth: OAuthSettings,
    /// The hosts that tools may connect to.
    pub egress: EgressSettings,
    /// The folders that file tools may use.
    pub files: FileSettings,
    /// Toolsets.
    pub toolsets: ToolsetSettings,
    /// How results are shown.
    pub render: RenderSettings,
    /// Values of `${NAME}` in addition to stored credentials.
    pub secrets: SecretSettings,
    /// The built-in tools.
    pub built_ins: BuiltInSettings,
    /// The record of calls.
    pub ledger: LedgerSettings,
    /// The queue of calls.
    pub queue: QueueSettings,
    /// The models of agents.
    pub models: ModelSettings,
    /// Retrieval pipelines.
    pub retrieval: RetrievalSettings,
    /// Runs of agents.
    pub runs: RunSettings,
    /// Approvals of calls.
    pub approvals: ApprovalSettings,
    /// People that identity providers create.
    pub scim: ScimSettings,
    /// The limits that hold for all tenants.
    pub limits: LimitSettings,
    /// The metrics.
    pub metrics: MetricsSettings,
    /// Deliveries to webhooks.
    pub webhooks: WebhookSettings,
    /// Retention limits.
    pub retention: Retention,
    /// The sandbox of tool processes.
    pub sandbox: SandboxSettings,
    /// The packages of Python tools.
    pub python: PythonSettings,
    /// The limits of `wasm` tools.
    pub wasm: WasmLimits,
    /// How these settings were configured, for the web interface.
    pub config: ConfigReport,
}

/// How settings were configured: shown to platform admins, without effect.
#[derive(Debug, Clone, Default)]
pub struct ConfigReport {
    /// The effective values, in the order of the documentation.
    pub effective: Vec<EffectiveSetting>,
    /// Warnings about the configuration.
    pub warnings: Vec<String>,
}

/// A configuration value and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EffectiveSetting {
    /// The key, or the name of an environment variable.
    pub key: String,
    /// The value; `***` for a secret.
    pub value: Value,
    /// Where it comes from.
    pub source: SettingSource,
    /// Its purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// Where a configuration value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SettingSource {
    /// It is the default.
    Default,
    /// `haft.toml`.
    File,
    /// An environment variable.
    Environment,
    /// An option of the command line.
    Flag,
}

/// The HTTP server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The largest request body in bytes.
    pub max_body_bytes: usize,
    /// The most concurrent calls.
    pub max_running_calls: usize,
    /// Origins that browsers may send requests from; `*` allows every origin.
    pub cors_origins: Vec<String>,
    /// How long running calls may continue after a stop signal.
    pub shutdown_grace: Duration,
    /// How long a browser stays logged in.
    pub session_lifetime: Duration,
    /// The maximum number of open sockets and event streams of a node.
    pub max_streams: usize,
    /// The maximum per token.
    pub max_streams_per_token: usize,
    /// The maximum per address; 0 means no limit.
    pub max_streams_per_address: usize,
}

/// Imports of API descriptions.
#[derive(Debug, Clone, Copy)]
pub struct ImportSettings {
    /// The largest document in bytes.
    pub max_document_bytes: usize,
}

impl Default for ImportSettings {
    fn default() -> Self {
        Self { max_document_bytes: haft_import::api::MAX_DOCUMENT }
    }
}

/// The MCP server.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// Host names that clients may use, in addition to IP addresses and `localhost`; `*` allows every name.
    pub allowed_hosts: Vec<String>,
    /// The public URL of the server, such as `https://tools.example.com`; `None` uses the host of each request.
    pub public_url: Option<String>,
    /// With more tools than this, clients get tools to search and call them instead of the full list.
    pub compact_above: usize,
    /// The same applies if the definitions exceed this estimated number of tokens.
    pub compact_above_tokens: usize,
    /// How long a call waits for an account before a client without a session is asked again.
    pub connect_wait: Duration,
    /// The MCP servers that a file declares; `None` if no file was read, which leaves the stored ones unchanged.
    pub servers: Option<DeclaredServers>,
}

/// The MCP servers that a file declares.
#[derive(Debug, Clone)]
pub struct DeclaredServers {
    /// The file.
    pub file: PathBuf,
    /// The servers, parsed by [`declared_mcp_server`].
    pub servers: Vec<McpServer>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            public_url: None,
            compact_above: 100,
            compact_above_tokens: 32_000,
            connect_wait: Duration::from_secs(50),
            servers: None,
        }
    }
}

/// Applications that people connect: hosted clients that log in with OAuth.
#[derive(Debug, Clone)]
pub struct OAuthSettings {
    /// How long an access token works.
    pub access_token_lifetime: Duration,
    /// How long an application stays connected without refreshing its tokens.
    pub refresh_token_lifetime: Duration,
    /// Whether applications may register themselves.
    pub dynamic_registration: bool,
}

impl Default for OAuthSettings {
    fn default() -> Self {
        Self {
            access_token_lifetime: Duration::from_hours(1),
            refresh_token_lifetime: Duration::from_hours(90 * 24),
            dynamic_registration: true,
        }
    }
}

/// The hosts that tools may connect to.
#[derive(Debug, Clone, Default)]
pub struct EgressSettings {
    /// Host patterns (`api.example.com`, `*.example.com`); empty allows every public host.
    pub allowed_hosts: Vec<String>,
    /// Hosts, addresses or networks that are allowed although they are private or loopback.
    pub private_hosts: Vec<String>,
}

/// The folders that file tools may use.
#[derive(Debug, Clone, Default)]
pub struct FileSettings {
    /// Names and folders of the tenant `default`; the first one is the default. Empty means `workspace` in the home
    /// folder. Other tenants have a folder of their own.
    pub sandboxes: Vec<(String, PathBuf)>,
    /// The names of the read-only folders.
    pub read_only: Vec<String>,
}

/// Values of `${NAME}` in addition to stored credentials.
#[derive(Debug, Clone, Default)]
pub struct SecretSettings {
    /// Values from the environment, by name.
    pub environment: Vec<(String, Secret)>,
    /// The sources outside of haft.
    pub sources: SecretSourceSettings,
}

/// The built-in tools.
#[derive(Debug, Clone)]
pub struct BuiltInSettings {
    /// Whether the built-in tools are installed.
    pub enabled: bool,
    /// Settings for mail and search, by the names in [`BUILT_IN_VARIABLES`]; definitions cannot refer to them.
    pub platform: Vec<(String, Secret)>,
    /// The rate limit of `send_email`, and of `send_whatsapp`, in messages per minute; 0 is unlimited.
    pub emails_per_minute: u32,
}

impl Default for BuiltInSettings {
    fn default() -> Self {
        Self { enabled: true, platform: Vec::new(), emails_per_minute: haft_builtins::EMAILS_PER_MINUTE }
    }
}

/// The record of calls.
#[derive(Debug, Clone)]
pub struct LedgerSettings {
    /// Which responses wait until the record is on disk.
    pub sync: LedgerSync,
    /// How many days calls are kept; 0 keeps them forever.
    pub keep_days: u32,
}

/// The queue of calls.
#[derive(Debug, Clone)]
pub struct QueueSettings {
    /// How many queued calls run at once on this node.
    pub workers: usize,
    /// How many calls of one tenant may wait.
    pub max_queued: u64,
}

impl Default for QueueSettings {
    fn default() -> Self {
        Self { workers: 16, max_queued: 100_000 }
    }
}

/// The models of agents.
#[derive(Debug, Clone)]
pub struct ModelSettings {
    /// The model of agents that name none.
    pub default: Option<String>,
    /// The private addresses of model servers that agents may use.
    pub private_urls: Vec<String>,
    /// What models cost, by name; `*` stands for any text.
    pub prices: BTreeMap<String, Prices>,
    /// How long an answer may take.
    pub timeout: Duration,
}

impl Default for ModelSettings {
    fn default() -> Self {
        Self {
            default: None,
            private_urls: vec!["http://localhost:11434".to_owned()],
            prices: BTreeMap::new(),
            timeout: Duration::from_mins(10),
        }
    }
}

/// Retrieval pipelines.
#[derive(Debug, Clone, Copy)]
pub struct RetrievalSettings {
    /// The largest document in bytes.
    pub max_document_bytes: usize,
    /// The most chunks of one pipeline.
    pub max_chunks: u64,
    /// The memory for the indexes of a node; those that were used least recently make room.
    pub max_index_bytes: usize,
}

impl Default for RetrievalSettings {
    fn default() -> Self {
        Self { max_document_bytes: 100 << 20, max_chunks: 200_000, max_index_bytes: 1 << 30 }
    }
}

/// Runs of agents.
#[derive(Debug, Clone)]
pub struct RunSettings {
    /// How many runs a node works on at once; runs inside a run do not count.
    pub max_running: usize,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self { max_running: 64 }
    }
}

/// Approvals of calls.
#[derive(Debug, Clone)]
pub struct ApprovalSettings {
    /// How long a call waits for a decision.
    pub lifetime: Duration,
    /// Whether requesters are forbidden to decide about their own calls.
    pub four_eyes: bool,
}

impl Default for ApprovalSettings {
    fn default() -> Self {
        Self { lifetime: Duration::from_hours(24), four_eyes: false }
    }
}

/// What people may do whom an identity provider creates (SCIM). Their groups add to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScimSettings {
    /// Their role.
    pub default_role: Role,
    /// Whether they may see and call every tool; otherwise none.
    pub all_tools: bool,
}

impl Default for ScimSettings {
    fn default() -> Self {
        Self { default_role: Role::Viewer, all_tools: false }
    }
}

/// The limits that hold for all tenants.
#[derive(Debug, Clone, Copy)]
pub struct LimitSettings {
    /// How many calls of one session may start per minute; 0 is unlimited.
    pub session_calls_per_minute: u32,
    /// How many identical calls a session may make in a row within a minute; 0 is unlimited.
    pub identical_calls: u32,
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self { session_calls_per_minute: 0, identical_calls: 20 }
    }
}

/// The metrics.
#[derive(Debug, Clone, Copy)]
pub struct MetricsSettings {
    /// How many tools have metrics of their own; the others are counted together.
    pub top_tools: usize,
}

impl Default for MetricsSettings {
    fn default() -> Self {
        Self { top_tools: 100 }
    }
}

/// The sandbox of tool processes, and their limits.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// The sandbox engine.
    pub engine: EngineName,
    /// The default image of container engines.
    pub image: Option<String>,
    /// Additional folders that sandboxed processes may read.
    pub read_only: Vec<PathBuf>,
    /// The search path of programs, and the limits and concurrency of processes.
    pub processes: ProcessSettings,
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            engine: EngineName::Bubblewrap,
            image: None,
            read_only: Vec::new(),
            processes: ProcessSettings::default(),
        }
    }
}

impl Settings {
    /// Returns the defaults for a home folder; a relative path is resolved against the working directory.
    pub fn for_home(home: PathBuf) -> Self {
        let home = std::path::absolute(&home).unwrap_or(home);
        Self {
            home,
            addr: SocketAddr::from(([127, 0, 0, 1], 18789)),
            mode: Mode::Debug,
            database_url: None,
            blobs: BlobSettings::default(),
            results: ResultSettings::default(),
            token: None,
            key: None,
            new_key: None,
            server: ServerSettings::default(),
            import: ImportSettings::default(),
            mcp: McpSettings::default(),
            sign_on: SignOnSettings::default(),
            oauth: OAuthSettings::default(),
            egress: EgressSettings::default(),
            files: FileSettings::default(),
            toolsets: ToolsetSettings::default(),
            render: RenderSettings::default(),
            secrets: SecretSettings::default(),
            built_ins: BuiltInSettings::default(),
            ledger: LedgerSettings::default(),
            queue: QueueSettings::default(),
            models: ModelSettings::default(),
            retrieval: RetrievalSettings::default(),
            runs: RunSettings::default(),
            approvals: ApprovalSettings::default(),
            scim: ScimSettings::default(),
            limits: LimitSettings::default(),
            metrics: MetricsSettings::default(),
            webhooks: WebhookSettings::default(),
            retention: Retention::default(),
            sandbox: SandboxSettings::default(),
            python: PythonSettings::default(),
            wasm: WasmLimits::default(),
            config: ConfigReport::default(),
        }
    }
}

/// Results of calls.
#[derive(Debug, Clone, Copy)]
pub struct ResultSettings {
    /// Larger results are stored apart, and callers get a preview with a handle; in bytes.
    pub max_inline_bytes: u64,
}

impl Default for ResultSettings {
    fn default() -> Self {
        Self { max_inline_bytes: 256 * 1024 }
    }
}

/// Toolsets.
#[derive(Debug, Clone, Default)]
pub struct ToolsetSettings {
    /// The keys whose signatures are trusted.
    pub trusted_keys: Vec<TrustedKey>,
    /// Whether only packages that a trusted key signed can be installed.
    pub require_signed: bool,
}

/// How results are shown.
#[derive(Debug, Clone, Default)]
pub struct RenderSettings {
    /// The hosts that the renderer `frame` may show.
    pub frame_hosts: Vec<String>,
}

/// Deliveries to webhooks.
#[derive(Debug, Clone)]
pub struct WebhookSettings {
    /// How long a receiver may take to respond.
    pub timeout: Duration,
    /// How long to wait after each failed attempt; the last attempt has none.
    pub retry_delays: Vec<Duration>,
}

impl Default for WebhookSettings {
    fn default() -> Self {
        let seconds = [5, 30, 2 * 60, 10 * 60, 30 * 60, 2 * 3600, 5 * 3600];
        Self { timeout: Duration::from_secs(15), retry_delays: seconds.map(Duration::from_secs).to_vec() }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            max_body_bytes: 8 * 1024 * 1024,
            max_running_calls: 1024,
            cors_origins: Vec::new(),
            shutdown_grace: Duration::from_secs(30),
            session_lifetime: Duration::from_hours(12),
            max_streams: 2000,
            max_streams_per_token: 100,
            max_streams_per_address: 500,
        }
    }
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self { sync: LedgerSync::Auto, keep_days: 30 }
    }
}
