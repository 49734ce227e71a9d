//! Parses the definition of an MCP server, from a request or from the configuration.

use std::collections::BTreeMap;

use haft_core::Timestamp;
use haft_core::mcp::{CredentialMode, providers_of_server};
use haft_core::mcp::{
    MAX_RESPONSE_BYTES, MAX_START_TIMEOUT, McpServer, OAuthClient, OAuthGrant, Stdio, StreamableHttp,
    Transport,
};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::secret::MASK;
use haft_core::spec::Policy;
use haft_definition::check::{MAX_TIMEOUT, has_userinfo};
use serde::Deserialize;
use url::Url;

/// An MCP server: a program (`command`) or an address (`url`). Values may refer to secrets as `${NAME}`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the request")]
pub struct NewServer {
    /// The id of the server, and of the bundle with its tools.
    #[serde(default)]
    id: String,
    /// The program to start.
    command: Option<String>,
    /// Arguments of the program.
    #[serde(default)]
    args: Vec<String>,
    /// Environment variables of the program, in addition to PATH, HOME and LANG.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The working directory of the program.
    cwd: Option<String>,
    /// Whether the program may use the network.
    #[serde(default)]
    network: bool,
    /// Whether the program can access only system folders and `cwd`.
    #[serde(default)]
    sandbox: bool,
    /// Whether each call in a workspace runs in a process of its own, in the folder of the workspace.
    #[serde(default)]
    workspace: bool,
    /// The URL of a remote server.
    url: Option<String>,
    /// Headers sent with every request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The OAuth client, if the server requires a login.
    oauth: Option<NewOAuth>,
    /// A prefix for the names of its tools.
    #[serde(default)]
    prefix: String,
    /// Whether haft connects to it.
    #[serde(default = "enabled_by_default")]
    enabled: bool,
    /// Whether changed tools are accepted without review.
    #[serde(default)]
    accept_changes: bool,
    /// Whether new tools wait for review; default: once somebody reviewed the server.
    review_new_tools: Option<bool>,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    policy: Option<String>,
    /// Whose credentials its connections use: `shared`, `person` or `person_or_shared`.
    credentials: Option<String>,
    /// The timeout of a call, in milliseconds; progress of the tool restarts it. Default: 30000.
    timeout_ms: Option<u64>,
    /// How long the server may take to start, in milliseconds. Default: 120000.
    start_timeout_ms: Option<u64>,
    /// The size limit of a result, in bytes. Default: 4194304.
    max_response_bytes: Option<u64>,
}

/// The OAuth client of a server; without a `client_id`, haft registers dynamically.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct NewOAuth {
    /// The id of a client registered at the authorization server.
    client_id: Option<String>,
    /// The client secret, as `${NAME}`.
    client_secret: Option<String>,
    /// The private key (PEM, PKCS 8) for `private_key_jwt`, as `${NAME}`; only with `client_credentials`.
    private_key: Option<String>,
    /// The scopes to request; default: those that the server requires.
    #[serde(default)]
    scopes: Vec<String>,
    /// The grant: `authorization_code` (a user logs in, the default) or `client_credentials`.
    grant: Option<String>,
}

impl NewOAuth {
    fn parse(self) -> Result<OAuthClient, String> {
        let grant = match self.grant.as_deref() {
            None | Some("authorization_code") => OAuthGrant::AuthorizationCode,
            Some("client_credentials") => OAuthGrant::ClientCredentials,
            Some(_) => {
                let message = "`oauth.grant` must be `authorization_code` or `client_credentials`";
                return Err(message.to_owned());
            }
        };
        if self.client_id.is_none()
            && (self.client_secret.is_some() || grant == OAuthGrant::ClientCredentials)
        {
            return Err("missing `oauth.client_id`".to_owned());
        }
        for (name, text) in [("client_secret", &self.client_secret), ("private_key", &self.private_key)] {
            if text.as_deref().is_some_and(|text| !is_reference(text)) {
                return Err(format!(
                    "`oauth.{name}` must be a reference `${{NAME}}`; store the value with `haft secret set NAME`"
                ));
            }
        }
        if self.private_key.is_some() && grant != OAuthGrant::ClientCredentials {
            return Err("`oauth.private_key` requires `oauth.grant: client_credentials`".to_owned());
        }
        if self.private_key.is_some() && self.client_secret.is_some() {
            return Err("set either `oauth.client_secret` or `oauth.private_key`, not both".to_owned());
        }
        let Self { client_id, client_secret, private_key, scopes, .. } = self;
        if scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
            return Err("`oauth.scopes` must not contain empty entries or spaces".to_owned());
        }
        Ok(OAuthClient { client_id, client_secret, private_key, scopes, grant })
    }
}

/// Returns whether a text is exactly one `${NAME}`; anything beside it would be stored in clear.
fn is_reference(text: &str) -> bool {
    let name = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.is_empty() && !name.contains(['$', '{', '}']))
}

/// Checks the URL of a server, as far as possible before secrets are substituted.
fn check_url(url: String) -> Result<String, String> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("`url` must start with `http://` or `https://`".to_owned());
    }
    if has_userinfo(&url) {
        return Err("`url` must not contain user info; send an `Authorization` header with `headers` instead, using `${NAME}` for \
                    secrets"
            .to_owned());
    }
    if !url.contains("${") {
        Url::parse(&url).map_err(|error| format!("`url`: {error}"))?;
    }
    Ok(url)
}

fn enabled_by_default() -> bool {
    true
}

impl NewServer {
    /// Converts the request into a server; an error names the field and the fix.
    pub fn parse(self, tenant: TenantId, now: Timestamp) -> Result<McpServer, String> {
        let id = BundleSlug::new(&self.id).map_err(|error| format!("`id`: {error}"))?;
        if !self.prefix.is_empty() {
            ToolName::new(&self.prefix).map_err(|error| format!("`prefix`: {error}"))?;
        }
        let policy = parse_policy(self.policy.as_deref())?;
        let credentials = parse_credentials(self.credentials.as_deref())?;
        let timeout_ms = self.timeout_ms.map(check_timeout).transpose()?;
        let start_timeout_ms = self.start_timeout_ms.map(check_start_timeout).transpose()?;
        let max_response_bytes = self.max_response_bytes.map(check_response_limit).transpose()?;
        let is_masked = self.args.iter().chain(&self.url).any(|text| text.contains(MASK));
        if is_masked || self.env.values().chain(self.headers.values()).any(|value| value == MASK) {
            return Err("`***` masks a stored value; enter the value itself".to_owned());
        }
        if self.workspace && self.cwd.is_some() {
            return Err("set either `cwd` or `workspace`, not both".to_owned());
        }
        if self.workspace && self.command.is_none() {
            return Err("`workspace` requires `command`: only a program can run in a workspace".to_owned());
        }
        let transport = match (self.command, self.url) {
            (Some(command), None) if !command.trim().is_empty() => Transport::Stdio(Stdio {
                command,
                args: self.args,
                env: self.env,
                cwd: self.cwd,
                network: self.network,
                sandbox: self.sandbox,
                workspace: self.workspace,
            }),
            (None, Some(url)) => {
                let url = check_url(url)?;
                let oauth = self.oauth.map(NewOAuth::parse).transpose()?;
                Transport::Http(StreamableHttp { url, headers: self.headers, oauth })
            }
            _ => return Err("set either `command` or `url`".to_owned()),
        };
        let server = McpServer {
            enabled: self.enabled,
            accept_changes: self.accept_changes,
            review_new_tools: self.review_new_tools,
            policy,
            credentials,
            prefix: self.prefix,
            timeout_ms,
            start_timeout_ms,
            max_response_bytes,
            created_at: now,
            modified_at: now,
            ..McpServer::new(id, tenant, transport)
        };
        check_credentials(&server)?;
        Ok(server)
    }
}

/// Parses whose credentials the connections to a server use; the default is `shared`.
pub fn parse_credentials(text: Option<&str>) -> Result<CredentialMode, String> {
    let Some(text) = text else { return Ok(CredentialMode::Shared) };
    let message = "`credentials` must be `shared`, `person` or `person_or_shared`";
    CredentialMode::parse(text).ok_or_else(|| message.to_owned())
}

/// Checks that there is a place for the credentials of a person.
pub fn check_credentials(server: &McpServer) -> Result<(), String> {
    if server.credentials.is_shared() {
        return Ok(());
    }
    let providers = providers_of_server(server);
    if providers.is_empty() {
        let message = "a program with `credentials` other than `shared` needs a reference `${account:NAME}` in `env` or `args`";
        return Err(message.to_owned());
    }
    let Transport::Http(http) = &server.transport else { return Ok(()) };
    let has_token = http.headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
    let is_client = http.oauth.as_ref().is_some_and(|oauth| oauth.grant == OAuthGrant::ClientCredentials);
    let logs_in = providers.iter().any(|provider| provider.contains(':'));
    if logs_in && (has_token || is_client) {
        let message = "`credentials` other than `shared` needs a login of each person, or `${account:NAME}` in a header: \
                       remove the `Authorization` header and the grant `client_credentials`";
        return Err(message.to_owned());
    }
    Ok(())
}

/// Parses the policy for the tools of a server; the default is `allow`.
pub fn parse_policy(text: Option<&str>) -> Result<Policy, String> {
    match text {
        None | Some("allow") => Ok(Policy::Allow),
        Some("elevated") => Ok(Policy::Elevated),
        Some("deny") => Ok(Policy::Deny),
        Some(_) => Err("`policy` must be `allow`, `elevated` or `deny`".to_owned()),
    }
}

/// Checks the call timeout of a server.
pub fn check_timeout(millis: u64) -> Result<u64, String> {
    let max = MAX_TIMEOUT.as_millis();
    if millis == 0 || u128::from(millis) > max {
        return Err(format!("`timeout_ms` is {millis}; expected 1 to {max}"));
    }
    Ok(millis)
}

/// Checks the start timeout of a server.
pub fn check_start_timeout(millis: u64) -> Result<u64, String> {
    let max = MAX_START_TIMEOUT.as_millis();
    if millis < 1000 || u128::from(millis) > max {
        return Err(format!("`start_timeout_ms` is {millis}; expected 1000 to {max}"));
    }
    Ok(millis)
}

/// Checks the response size limit of a server.
pub fn check_response_limit(bytes: u64) -> Result<u64, String> {
    if bytes == 0 || bytes > MAX_RESPONSE_BYTES {
        return Err(format!("`max_response_bytes` is {bytes}; expected 1 to {MAX_RESPONSE_BYTES}"));
    }
    Ok(bytes)
}

/// Parses a server that the configuration declares under a name.
pub fn declared(name: &str, definition: serde_json::Value) -> Result<McpServer, String> {
    let mut new: NewServer = serde_json::from_value(definition).map_err(|error| error.to_string())?;
    if !new.id.is_empty() && new.id != name {
        return Err("`id` must be omitted or equal to the name of the table".to_owned());
    }
    name.clone_into(&mut new.id);
    new.parse(TenantId::default_tenant(), Timestamp::UNIX_EPOCH)
}
