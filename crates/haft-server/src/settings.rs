//! What a server is told when it starts. Where the values come from is not its business.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use haft_builtins::VARIABLES as BUILT_IN_VARIABLES;
use haft_core::mcp::McpServer;
use haft_core::runnable::Mode;
use haft_core::secret::Secret;
pub use haft_runtime::egress::check_host;
pub use haft_runtime::process::ProcessSettings;
pub use haft_sandbox::EngineName;
pub use haft_store::Retention;
pub use haft_wasm::WasmLimits;

pub use crate::mcp_definition::declared as declared_mcp_server;

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that holds everything of an embedded installation.
    pub home: PathBuf,
    /// Where to listen.
    pub addr: SocketAddr,
    /// The mode of calls that name none.
    pub mode: Mode,
    /// `postgres://…`; `None` means the SQLite file of the home folder.
    pub database_url: Option<Secret>,
    /// An admin token from outside; `None` means the one that the first start made.
    pub token: Option<Secret>,
    /// The key of the stored credentials; `None` means the key file of the home folder.
    pub key: Option<Secret>,
    /// The HTTP server.
    pub server: ServerSettings,
    /// What is read of API descriptions.
    pub import: ImportSettings,
    /// The MCP server.
    pub mcp: McpSettings,
    /// Where tools may connect to.
    pub egress: EgressSettings,
    /// Which folders file tools may use.
    pub files: FileSettings,
    /// Where `${NAME}` may find values besides the stored credentials.
    pub secrets: SecretSettings,
    /// The tools that come with haft.
    pub built_ins: BuiltInSettings,
    /// How calls are kept.
    pub ledger: LedgerSettings,
    /// How long and how much is kept.
    pub retention: Retention,
    /// What confines the processes of tools.
    pub sandbox: SandboxSettings,
    /// What the guests of `wasm` tools may use.
    pub wasm: WasmLimits,
}

/// The HTTP server.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    /// The largest request body in bytes.
    pub max_body_bytes: usize,
    /// The most calls that run at once.
    pub max_running_calls: usize,
    /// Origins that browsers may call from; `*` is every origin.
    pub cors_origins: Vec<String>,
    /// How long running calls may still take after a stop signal.
    pub shutdown_grace: Duration,
}

/// What is read of API descriptions.
#[derive(Debug, Clone, Copy)]
pub struct ImportSettings {
    /// The largest document in bytes.
    pub max_document_bytes: usize,
}

impl Default for ImportSettings {
    fn default() -> Self {
        Self { max_document_bytes: haft_definition::openapi::MAX_DOCUMENT }
    }
}

/// The MCP server.
#[derive(Debug, Clone)]
pub struct McpSettings {
    /// Names that clients may reach the server by, besides addresses and `localhost`; `*` is every name.
    pub allowed_hosts: Vec<String>,
    /// The address that clients know the server by, as in `https://tools.example.com`; `None` means the one that a
    /// request names.
    pub public_url: Option<String>,
    /// With more tools than this, a list holds only what finds and calls them.
    pub compact_above: usize,
    /// So does one with tools of more tokens than this, as far as that can be estimated.
    pub compact_above_tokens: usize,
    /// The MCP servers that a file declares; `None` where no file was read, which leaves what is known of it.
    pub servers: Option<DeclaredServers>,
}

/// The MCP servers that a file declares.
#[derive(Debug, Clone)]
pub struct DeclaredServers {
    /// The file.
    pub file: PathBuf,
    /// The servers, as [`declared_mcp_server`] reads them.
    pub servers: Vec<McpServer>,
}

impl Default for McpSettings {
    fn default() -> Self {
        Self {
            allowed_hosts: Vec::new(),
            public_url: None,
            compact_above: 100,
            compact_above_tokens: 32_000,
            servers: None,
        }
    }
}

/// Where tools may connect to.
#[derive(Debug, Clone, Default)]
pub struct EgressSettings {
    /// Host patterns (`api.example.com`, `*.example.com`); empty means every public host.
    pub allowed_hosts: Vec<String>,
    /// Hosts, addresses or networks that may be private or loopback.
    pub private_hosts: Vec<String>,
}

/// Which folders file tools may use.
#[derive(Debug, Clone, Default)]
pub struct FileSettings {
    /// Names and folders, the first one being the default; empty means `workspace` in the home folder.
    pub sandboxes: Vec<(String, PathBuf)>,
    /// The names of those in which nothing may be changed.
    pub read_only: Vec<String>,
}

/// Where `${NAME}` may find values besides the stored credentials.
#[derive(Debug, Clone, Default)]
pub struct SecretSettings {
    /// Values taken from the environment at start, by name.
    pub environment: Vec<(String, Secret)>,
}

/// The tools that come with haft.
#[derive(Debug, Clone)]
pub struct BuiltInSettings {
    /// Whether they are there.
    pub enabled: bool,
    /// What the platform says about mail and search, by the names of [`BUILT_IN_VARIABLES`]; no definition can name
    /// these values.
    pub platform: Vec<(String, Secret)>,
    /// How many messages `send_email` sends in a minute at most; 0 is as many as one likes.
    pub emails_per_minute: u32,
}

impl Default for BuiltInSettings {
    fn default() -> Self {
        Self { enabled: true, platform: Vec::new(), emails_per_minute: haft_builtins::EMAILS_PER_MINUTE }
    }
}

/// How calls are kept.
#[derive(Debug, Clone)]
pub struct LedgerSettings {
    /// Whether an answer waits for the disk (`true`) or only for the operating system.
    pub sync_to_disk: bool,
    /// How many days calls are kept; 0 is for ever.
    pub keep_days: u32,
}

/// What confines the processes of tools, and what each of them may use.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// The engine.
    pub engine: EngineName,
    /// The image of container engines, where a tool names none.
    pub image: Option<String>,
    /// Further folders that isolated processes may read.
    pub read_only: Vec<PathBuf>,
    /// Where programs are found, what each process may use, and how many run at once.
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
    /// Returns the defaults for a home folder; one that is relative is meant from where the program is now.
    pub fn for_home(home: PathBuf) -> Self {
        let home = std::path::absolute(&home).unwrap_or(home);
        Self {
            home,
            addr: SocketAddr::from(([127, 0, 0, 1], 18789)),
            mode: Mode::Debug,
            database_url: None,
            token: None,
            key: None,
            server: ServerSettings::default(),
            import: ImportSettings::default(),
            mcp: McpSettings::default(),
            egress: EgressSettings::default(),
            files: FileSettings::default(),
            secrets: SecretSettings::default(),
            built_ins: BuiltInSettings::default(),
            ledger: LedgerSettings::default(),
            retention: Retention::default(),
            sandbox: SandboxSettings::default(),
            wasm: WasmLimits::default(),
        }
    }
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            max_body_bytes: 8 * 1024 * 1024,
            max_running_calls: 1024,
            cors_origins: Vec::new(),
            shutdown_grace: Duration::from_secs(30),
        }
    }
}

impl Default for LedgerSettings {
    fn default() -> Self {
        Self { sync_to_disk: true, keep_days: 30 }
    }
}
