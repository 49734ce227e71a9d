//! MCP servers, their state and the changes of their tools.

use std::collections::BTreeMap;

use haft_core::finding::Finding;
use haft_core::implementation::ToolHints;
use haft_core::mcp::CredentialMode;
use haft_core::mcp::{McpServer, OAuthGrant, ServerState};
use haft_core::schema::RawSchema;
use haft_core::spec::Policy;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An MCP server with its state.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpServerView {
    #[serde(flatten)]
    pub server: McpServer,
    pub state: ServerState,
    /// Warnings about the definition, in the response to its creation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A page of MCP servers.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpServerList {
    pub mcp_servers: Vec<McpServerView>,
    pub total: u64,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The new and changed tools of an MCP server.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpChangeList {
    pub changes: Vec<McpToolChange>,
    pub total: usize,
}

/// A tool of an MCP server that is new, or that changed since it was accepted.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpToolChange {
    #[schema(example = "read_file")]
    pub name: String,
    /// Whether the change was rejected: the tool stays out of service until the server changes it again.
    pub rejected: bool,
    /// Whether no definition was ever accepted; `agreed` is then the one that the server listed first.
    pub new: bool,
    /// What the scan found in the definition that the server lists now, hard findings first.
    pub findings: Vec<Finding>,
    /// The accepted definition.
    pub agreed: McpToolSide,
    /// The definition that the server lists now.
    pub offered: McpToolSide,
}

/// The parts of a tool definition that a model reads.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpToolSide {
    #[schema(example = "Reads a file")]
    pub description: String,
    pub display_name: String,
    #[schema(value_type = Object)]
    pub input_schema: RawSchema,
    #[schema(value_type = Object)]
    pub output_schema: RawSchema,
    pub hints: McpToolHints,
}

/// The annotations of a tool.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpToolHints {
    pub read_only: bool,
    #[serde(flatten)]
    pub others: ToolHints,
}

/// What the scan found in the tools of an MCP server, hard findings first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct McpFindingList {
    pub findings: Vec<Finding>,
    pub total: usize,
}

/// The names of the rejected tools.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RejectedTools {
    #[schema(example = json!(["read_file"]))]
    pub rejected: Vec<String>,
}

/// The names of the accepted tools.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedTools {
    #[schema(example = json!(["read_file"]))]
    pub accepted: Vec<String>,
}

/// The new or changed tools to accept.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct AcceptBody {
    /// The names of the tools; default: all new and changed tools.
    pub tools: Option<Vec<String>>,
}

/// The new or changed tools to reject.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct RejectBody {
    /// The names of the tools; default: all new and changed tools.
    pub tools: Option<Vec<String>>,
}

/// A login that a user completes in a browser.
#[derive(Serialize, Deserialize, ToSchema)]
pub struct StartedLogin {
    /// The URL to open.
    #[schema(example = "https://auth.example.com/authorize?client_id=haft")]
    pub authorization_url: String,
    #[schema(example = "http://127.0.0.1:18789/api/mcp-servers/oauth/callback")]
    pub redirect_uri: String,
}

/// The result of a logout.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct LoggedOut {
    pub was_logged_in: bool,
}

/// An MCP server: a program (`command`) or an address (`url`). Values may refer to secrets as `${NAME}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the request")]
pub struct NewServer {
    /// The id of the server, and of the bundle with its tools.
    #[serde(default)]
    #[schema(required, example = "files", pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub id: String,
    /// The program to start.
    #[schema(example = "mcp-server-files")]
    pub command: Option<String>,
    /// Arguments of the program.
    #[serde(default)]
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to PATH, HOME and LANG.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The working directory of the program.
    pub cwd: Option<String>,
    /// Whether the program may use the network.
    #[serde(default)]
    pub network: bool,
    /// Whether the program can access only system folders and `cwd`.
    #[serde(default)]
    pub sandbox: bool,
    /// Whether each call in a workspace runs in a process of its own, in the folder of the workspace.
    #[serde(default)]
    pub workspace: bool,
    /// The URL of a remote server.
    pub url: Option<String>,
    /// Headers sent with every request.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The OAuth client, if the server requires a login.
    pub oauth: Option<NewOAuth>,
    /// A prefix for the names of its tools.
    #[serde(default)]
    pub prefix: String,
    /// Whether haft connects to it.
    #[serde(default = "enabled_by_default")]
    pub enabled: bool,
    /// Whether changed tools are accepted without review.
    #[serde(default)]
    pub accept_changes: bool,
    /// Whether new tools wait for review; default: once somebody reviewed the server.
    pub review_new_tools: Option<bool>,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    #[schema(value_type = Option<Policy>)]
    pub policy: Option<String>,
    /// Whose credentials its connections use.
    #[schema(value_type = Option<CredentialMode>)]
    pub credentials: Option<String>,
    /// The timeout of a call, in milliseconds; progress of the tool restarts it. Default: 30000.
    pub timeout_ms: Option<u64>,
    /// How long the server may take to start, in milliseconds. Default: 120000.
    pub start_timeout_ms: Option<u64>,
    /// The size limit of a result, in bytes. Default: 4194304.
    pub max_response_bytes: Option<u64>,
}

const fn enabled_by_default() -> bool {
    true
}

/// The OAuth client of a server; without a `client_id`, haft registers dynamically.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct NewOAuth {
    /// The id of a client registered at the authorization server.
    pub client_id: Option<String>,
    /// The client secret, as `${NAME}`.
    pub client_secret: Option<String>,
    /// The private key (PEM, PKCS 8) for `private_key_jwt`, as `${NAME}`; only with `client_credentials`.
    pub private_key: Option<String>,
    /// The scopes to request; default: those that the server requires.
    #[serde(default)]
    pub scopes: Vec<String>,
    /// The grant: `authorization_code` (a user logs in, the default) or `client_credentials`.
    #[schema(value_type = Option<OAuthGrant>)]
    pub grant: Option<String>,
}
