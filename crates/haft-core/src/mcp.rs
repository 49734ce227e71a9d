//! MCP servers whose tools haft uses: their configuration, the tools they list, and their connection state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::hash;
use crate::implementation::{Implementation, ToolHints};
use crate::name::{BundleSlug, TenantId};
use crate::secret::provider_of;
use crate::spec::{Limits, Policy, ToolSpec};

/// The maximum number of tools that are imported from one server.
pub const MAX_TOOLS: usize = 10_000;
/// The upper bound of `max_response_bytes` of a server.
pub const MAX_RESPONSE_BYTES: u64 = 256 << 20;
/// The default start timeout. Long, because many servers are downloaded by a package manager first.
pub const DEFAULT_START_TIMEOUT: Duration = Duration::from_mins(2);
/// The upper bound of the start timeout of a server.
pub const MAX_START_TIMEOUT: Duration = Duration::from_mins(30);

/// Whose credentials the connections to an MCP server use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CredentialMode {
    /// All callers share those of the server.
    #[default]
    Shared,
    /// Everybody has an account of their own.
    Person,
    /// Everybody may have an account of their own; without one, those of the server are used.
    PersonOrShared,
}

impl CredentialMode {
    /// Returns whether all callers share one connection.
    pub fn is_shared(&self) -> bool {
        *self == Self::Shared
    }

    /// Parses the name used in JSON.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "shared" => Some(Self::Shared),
            "person" => Some(Self::Person),
            "person_or_shared" => Some(Self::PersonOrShared),
            _ => None,
        }
    }
}

/// The configuration of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct McpServer {
    /// Its name, which is also the name of the bundle of its tools.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "files"))]
    pub id: BundleSlug,
    /// The tenant that owns it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "default"))]
    pub tenant: TenantId,
    /// The transport.
    #[serde(flatten)]
    pub transport: Transport,
    /// Whether haft connects to it.
    pub enabled: bool,
    /// Whether changes of its tools are accepted without review.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub accept_changes: bool,
    /// Whether new tools wait for review. By default they do once somebody reviewed the server, unless changes are accepted
    /// without review.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub review_new_tools: Option<bool>,
    /// When somebody last reviewed its tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewed_at: Option<Timestamp>,
    /// The call policy of its tools.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub policy: Policy,
    /// Whose credentials its connections use.
    #[serde(default, skip_serializing_if = "CredentialMode::is_shared")]
    pub credentials: CredentialMode,
    /// A prefix for the names of its tools; empty keeps the names.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// The timeout of its tools, in milliseconds; progress restarts it. By default that of the kind of tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long it may take to start, in milliseconds. Two minutes by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_timeout_ms: Option<u64>,
    /// The size limit of a result, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<u64>,
    /// The file that declares it, which is then the only place to change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub declared_in: Option<String>,
    /// When it was added.
    pub created_at: Timestamp,
    /// When its configuration last changed.
    pub modified_at: Timestamp,
}

impl McpServer {
    /// Creates an enabled server with the policy `allow`, no prefix, and review of changes.
    pub fn new(id: BundleSlug, tenant: TenantId, transport: Transport) -> Self {
        Self {
            id,
            tenant,
            transport,
            enabled: true,
            accept_changes: false,
            review_new_tools: None,
            reviewed_at: None,
            policy: Policy::Allow,
            credentials: CredentialMode::Shared,
            prefix: String::new(),
            timeout_ms: None,
            start_timeout_ms: None,
            max_response_bytes: None,
            declared_in: None,
            created_at: Timestamp::UNIX_EPOCH,
            modified_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Returns how long it may take to start.
    pub fn start_timeout(&self) -> Duration {
        self.start_timeout_ms.map_or(DEFAULT_START_TIMEOUT, Duration::from_millis)
    }

    /// Returns whether new tools wait for review.
    pub fn holds_new_tools(&self) -> bool {
        self.review_new_tools.unwrap_or(self.reviewed_at.is_some() && !self.accept_changes)
    }

    /// Applies the settings of the server to the definition of one of its tools.
    pub fn apply_settings(&self, spec: &mut ToolSpec) {
        spec.policy = self.policy;
        spec.execution.timeout_ms = self.timeout_ms;
        let default = || Limits::default().max_response_bytes;
        spec.execution.limits.max_response_bytes = self.max_response_bytes.unwrap_or_else(default);
        if let Implementation::Mcp(mcp) = &mut spec.implementation {
            mcp.workspace = self.transport.works_in_workspace();
        }
    }
}

/// How haft connects to a server. Values may contain `${NAME}`, which is replaced by the secret on connect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = McpTransport))]
#[serde(untagged)]
pub enum Transport {
    /// A local program that speaks MCP over standard input and output.
    Stdio(Stdio),
    /// A server that speaks MCP over HTTP.
    Http(StreamableHttp),
}

impl Transport {
    /// Returns whether calls run in the folder of their workspace.
    pub fn works_in_workspace(&self) -> bool {
        matches!(self, Transport::Stdio(stdio) if stdio.workspace)
    }
}

/// The stdio transport: a local program.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = McpStdio))]
pub struct Stdio {
    /// The program.
    #[cfg_attr(feature = "openapi", schema(example = "mcp-server-files"))]
    pub command: String,
    /// Its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment variables, in addition to PATH, HOME and LANG.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Its working folder; a private folder by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Whether it may use the network.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub network: bool,
    /// Whether it is sandboxed: it can read only system folders and `cwd`.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub sandbox: bool,
    /// Whether calls in a workspace run in a process of their own, in the folder of the workspace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub workspace: bool,
}

/// The Streamable HTTP transport.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = McpHttp))]
pub struct StreamableHttp {
    /// The URL.
    #[cfg_attr(feature = "openapi", schema(example = "https://mcp.example.com/mcp"))]
    pub url: String,
    /// Headers that are sent with every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// The OAuth client to use if the server requires authorization; by default haft registers one dynamically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthClient>,
}

/// The OAuth client of haft at the authorization server of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OAuthClient {
    /// The id of a registered client; if `None`, haft registers one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The client secret, as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The private key for `private_key_jwt` authentication with client credentials, as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_key: Option<String>,
    /// The scopes to request; empty requests what the server advertises.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// The grant type.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub grant: OAuthGrant,
}

/// The OAuth grant type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum OAuthGrant {
    /// A person authorizes haft in a browser.
    #[default]
    AuthorizationCode,
    /// The client authenticates as itself.
    ClientCredentials,
}

/// A tool listed by an MCP server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ListedTool {
    /// Its name on the server.
    pub name: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// The schema of its arguments.
    #[serde(default)]
    pub input_schema: Value,
    /// The schema of its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Whether the server marks it as read-only.
    #[serde(default)]
    pub read_only: bool,
    /// What else the server says about its behavior.
    #[serde(default, skip_serializing_if = "ToolHints::is_empty")]
    pub hints: ToolHints,
}

impl ListedTool {
    /// Returns the digest of everything that a model reads. A different digest means that the tool may do something
    /// else than what was approved.
    pub fn digest(&self) -> String {
        hash::of_value(self).unwrap_or_default()
    }
}

/// The connection phase of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = McpPhase))]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The program was started and has not responded yet.
    Starting,
    /// Connecting to the URL.
    Connecting,
    /// Connected.
    Connected,
    /// Disabled or stopped.
    Disconnected,
    /// Connecting failed or the connection was lost; haft retries.
    Error,
    /// The server requires authorization.
    NeedsAuth,
}

impl Phase {
    /// Returns whether the first response is still awaited.
    pub fn is_pending(self) -> bool {
        matches!(self, Phase::Starting | Phase::Connecting)
    }
}

/// The connection state of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = McpServerState))]
pub struct ServerState {
    /// The phase.
    pub phase: Phase,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The last lines of its standard error.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stderr: Vec<String>,
    /// The name and version that it reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<String>,
    /// The negotiated protocol version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// How many of its tools were imported.
    pub tools: usize,
    /// The tools that were rejected, each with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
    /// The number of consecutive failures.
    pub failures: u32,
}

impl ServerState {
    /// Returns the state of a server that haft does not connect to.
    pub fn disconnected() -> Self {
        Self {
            phase: Phase::Disconnected,
            error: None,
            stderr: Vec::new(),
            server_info: None,
            protocol: None,
            tools: 0,
            refused: Vec::new(),
            failures: 0,
        }
    }
}

/// Returns the key under which the OAuth tokens of a server are stored; credential names cannot contain `:`.
pub fn login_key(id: &BundleSlug) -> String {
    format!("mcp:{id}")
}

/// Returns the key of an MCP server as a provider; names of providers cannot contain `:`.
pub fn mcp_provider(id: &str) -> String {
    format!("mcp:{id}")
}

/// Returns the providers whose accounts the connection of a person to an MCP server needs: those that its definition
/// refers to, otherwise the server itself.
pub fn providers_of_server(server: &McpServer) -> Vec<String> {
    let texts: Vec<&String> = match &server.transport {
        Transport::Stdio(program) => program.args.iter().chain(program.env.values()).collect(),
        Transport::Http(http) => http.headers.values().chain([&http.url]).collect(),
    };
    let mut providers = Vec::new();
    for text in texts {
        for part in text.split("${").skip(1) {
            let reference = part.split_once('}').map(|(reference, _)| reference.trim());
            let Some(provider) = reference.and_then(provider_of) else { continue };
            if !providers.iter().any(|known| known == provider) {
                providers.push(provider.to_owned());
            }
        }
    }
    if providers.is_empty() && matches!(server.transport, Transport::Http(_)) {
        providers.push(mcp_provider(server.id.as_str()));
    }
    providers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_needs_the_accounts_that_it_refers_to() {
        let check = |header: Option<&str>, expected: &[&str]| {
            let headers = header.map(|text| ("x-key".to_owned(), text.to_owned())).into_iter().collect();
            let url = "https://a.test/mcp".to_owned();
            let transport = Transport::Http(StreamableHttp { url, headers, oauth: None });
            let id = BundleSlug::new("files").unwrap();
            let server = McpServer::new(id, TenantId::default_tenant(), transport);
            assert_eq!(providers_of_server(&server), expected, "{header:?}");
        };
        check(None, &["mcp:files"]);
        check(Some("${TOKEN}"), &["mcp:files"]);
        check(Some("Bearer ${account:one} ${ account:two }${account:one}"), &["one", "two"]);
        check(Some("${account:never ends"), &["mcp:files"]);
    }
}
