//! MCP servers whose tools haft uses: what is configured, what they list, and what becomes of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::hash;
use crate::name::{BundleSlug, TenantId};
use crate::spec::Policy;

/// The most tools that haft takes from one server.
pub const MAX_TOOLS: usize = 10_000;

/// An MCP server that is configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct McpServer {
    /// Its name, and that of the bundle that holds its tools.
    pub id: BundleSlug,
    /// Who owns it.
    pub tenant: TenantId,
    /// How it is reached.
    #[serde(flatten)]
    pub transport: Transport,
    /// Whether it is connected to.
    pub enabled: bool,
    /// Whether a tool that changes on the server is taken over without being asked.
    #[serde(default)]
    pub accept_changes: bool,
    /// Who may call its tools.
    #[serde(default)]
    pub policy: Policy,
    /// What stands before the names of its tools; nothing keeps them as they are.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The file that declares it; what is declared there is changed there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_in: Option<String>,
    /// When it was configured.
    pub created_at: Timestamp,
    /// When that was last changed.
    pub modified_at: Timestamp,
}

impl McpServer {
    /// Makes a server that is switched on, whose tools anyone may call as they are named there, and whose changes are
    /// asked about.
    pub fn new(id: BundleSlug, tenant: TenantId, transport: Transport) -> Self {
        Self {
            id,
            tenant,
            transport,
            enabled: true,
            accept_changes: false,
            policy: Policy::Allow,
            prefix: String::new(),
            declared_in: None,
            created_at: Timestamp::UNIX_EPOCH,
            modified_at: Timestamp::UNIX_EPOCH,
        }
    }
}

/// How a server is reached. Texts may name secrets as `${NAME}`; they are put in when it is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Transport {
    /// A program that is started and spoken to by its standard input and output.
    Stdio(Stdio),
    /// An address that is spoken to by HTTP.
    Http(StreamableHttp),
}

/// A program that is started.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stdio {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment, besides PATH, HOME and LANG.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The folder that it starts in; a private one where none is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether it may use the network.
    #[serde(default)]
    pub network: bool,
    /// Whether it sees nothing of the machine but its system folders and `cwd`.
    #[serde(default)]
    pub sandbox: bool,
}

/// An address that is spoken to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct StreamableHttp {
    /// The address.
    pub url: String,
    /// Headers of every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// How haft shows itself where the server wants a login; without it, it registers by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthClient>,
}

/// How haft shows itself to the authorisation server of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OAuthClient {
    /// The client that was registered there; nothing means that haft registers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Its secret, as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The key by which it proves who it is in place of a secret, where it acts for itself, as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// What to ask for; nothing means what the server says.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Who agrees: a person, or nobody.
    #[serde(default)]
    pub grant: OAuthGrant,
}

/// Who agrees that haft uses a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// A person, in a browser.
    #[default]
    AuthorizationCode,
    /// Nobody: the client acts for itself.
    ClientCredentials,
}

/// A tool as a server lists it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ListedTool {
    /// Its name there.
    pub name: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it does.
    #[serde(default)]
    pub description: String,
    /// The schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The schema of its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether the server says that it changes nothing.
    #[serde(default)]
    pub read_only: bool,
}

impl ListedTool {
    /// Returns the digest of everything that a model reads of it. Another digest means that it may do something
    /// else than what someone agreed to.
    pub fn digest(&self) -> String {
        // The order of keys says nothing to anybody.
        hash::of_value(self).unwrap_or_default()
    }
}

/// Where a server is between its configuration and its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It is being connected to.
    Connecting,
    /// It answers.
    Connected,
    /// It is switched off, or was stopped.
    Disconnected,
    /// It could not be reached, or went away; it is tried again.
    Error,
    /// It wants a login.
    NeedsAuth,
}

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServerState {
    /// Where it is.
    pub phase: Phase,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last lines that its program wrote to its standard error.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// What it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<String>,
    /// The version of the protocol that is spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// How many of the tools that it lists were taken.
    pub tools: usize,
    /// Which were not, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// How often it failed in a row.
    pub failures: u32,
}

/// Returns the name under which the login to a server is kept. No credential can have it.
pub fn login_key(id: &BundleSlug) -> String {
    format!("mcp:{id}")
}
