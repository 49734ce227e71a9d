//! What is said of an MCP server: in a request, or in the configuration.

use std::collections::BTreeMap;

use haft_core::Timestamp;
use haft_core::mcp::{McpServer, OAuthClient, OAuthGrant, Stdio, StreamableHttp, Transport};
use haft_core::name::{BundleSlug, TenantId, ToolName};
use haft_core::secret::MASK;
use haft_core::spec::Policy;
use haft_definition::check::has_userinfo;
use serde::Deserialize;
use url::Url;
use utoipa::ToSchema;

/// A server to use: a program (`command`) or an address (`url`). Texts may name secrets as `${NAME}`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the request")]
pub(crate) struct NewServer {
    /// Its name, and that of the bundle that holds its tools.
    #[serde(default)]
    id: String,
    /// The program.
    command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Its environment, besides PATH, HOME and LANG.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The folder that it starts in.
    cwd: Option<String>,
    /// Whether the program may use the network.
    #[serde(default)]
    network: bool,
    /// Whether the program sees nothing of the machine but its system folders and `cwd`.
    #[serde(default)]
    sandbox: bool,
    /// The address.
    url: Option<String>,
    /// Headers of every request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How haft shows itself where the server wants a login.
    oauth: Option<NewOAuth>,
    /// What stands before the names of its tools.
    #[serde(default)]
    prefix: String,
    /// Whether it is connected to.
    #[serde(default = "yes")]
    enabled: bool,
    /// Whether a tool that changes on the server is taken over without being asked.
    #[serde(default)]
    accept_changes: bool,
    /// Who may call its tools: `allow`, `elevated` or `deny`.
    policy: Option<String>,
}

/// How haft shows itself to the authorisation server; without it, it registers by itself.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NewOAuth {
    /// The client that was registered there.
    client_id: Option<String>,
    /// Its secret, as `${NAME}`.
    client_secret: Option<String>,
    /// The key (PEM, PKCS 8) that it signs with in place of a secret (`private_key_jwt`), as `${NAME}`; for
    /// `client_credentials` only.
    private_key: Option<String>,
    /// What to ask for; nothing means what the server says.
    #[serde(default)]
    scopes: Vec<String>,
    /// Who agrees: `authorization_code` (a person, the default) or `client_credentials` (nobody).
    grant: Option<String>,
}

impl NewOAuth {
    fn read(self) -> Result<OAuthClient, String> {
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
            return Err("`oauth.client_id` is missing".to_owned());
        }
        for (name, text) in [("client_secret", &self.client_secret), ("private_key", &self.private_key)] {
            if text.as_deref().is_some_and(|text| !is_reference(text)) {
                return Err(format!(
                    "`oauth.{name}`: store it with `haft secret set NAME`, and write `${{NAME}}`"
                ));
            }
        }
        if self.private_key.is_some() && grant != OAuthGrant::ClientCredentials {
            return Err("`oauth.private_key` is for `oauth.grant: client_credentials` only".to_owned());
        }
        if self.private_key.is_some() && self.client_secret.is_some() {
            return Err("say either `oauth.client_secret` or `oauth.private_key`".to_owned());
        }
        let Self { client_id, client_secret, private_key, scopes, .. } = self;
        if scopes.iter().any(|scope| scope.is_empty() || scope.contains(char::is_whitespace)) {
            return Err("`oauth.scopes` must be words without spaces".to_owned());
        }
        Ok(OAuthClient { client_id, client_secret, private_key, scopes, grant })
    }
}

/// Tells whether a text is one `${NAME}` and nothing else: what stands beside it would be shown.
fn is_reference(text: &str) -> bool {
    let name = text.trim().strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    name.is_some_and(|name| !name.is_empty() && !name.contains(['$', '{', '}']))
}

/// Checks the address of a server as far as that can be done before its secrets are put in.
fn checked(url: String) -> Result<String, String> {
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("`url` must begin with http:// or https://".to_owned());
    }
    if has_userinfo(&url) {
        return Err("`url` names a user before the host; send an `Authorization` header in its place: `headers`, with \
                    `${NAME}` for what is secret"
            .to_owned());
    }
    if !url.contains("${") {
        Url::parse(&url).map_err(|error| format!("`url`: {error}"))?;
    }
    Ok(url)
}

fn yes() -> bool {
    true
}

impl NewServer {
    /// Makes the server of what was said; an error names the field and the fix.
    pub(crate) fn read(self, tenant: TenantId, now: Timestamp) -> Result<McpServer, String> {
        let id = BundleSlug::new(&self.id).map_err(|error| format!("`id`: {error}"))?;
        if !self.prefix.is_empty() {
            ToolName::new(&self.prefix).map_err(|error| format!("`prefix`: {error}"))?;
        }
        let policy = policy(self.policy.as_deref())?;
        let told = self.args.iter().chain(&self.url).any(|text| text.contains(MASK));
        if told || self.env.values().chain(self.headers.values()).any(|value| value == MASK) {
            return Err("`***` stands for a value that is not shown; write the value".to_owned());
        }
        let transport = match (self.command, self.url) {
            (Some(command), None) if !command.trim().is_empty() => Transport::Stdio(Stdio {
                command,
                args: self.args,
                env: self.env,
                cwd: self.cwd,
                network: self.network,
                sandbox: self.sandbox,
            }),
            (None, Some(url)) => {
                let url = checked(url)?;
                let oauth = self.oauth.map(NewOAuth::read).transpose()?;
                Transport::Http(StreamableHttp { url, headers: self.headers, oauth })
            }
            _ => return Err("say either `command` or `url`".to_owned()),
        };
        Ok(McpServer {
            enabled: self.enabled,
            accept_changes: self.accept_changes,
            policy,
            prefix: self.prefix,
            created_at: now,
            modified_at: now,
            ..McpServer::new(id, tenant, transport)
        })
    }
}

/// Reads who may call the tools of a server.
pub(crate) fn policy(said: Option<&str>) -> Result<Policy, String> {
    match said {
        None | Some("allow") => Ok(Policy::Allow),
        Some("elevated") => Ok(Policy::Elevated),
        Some("deny") => Ok(Policy::Deny),
        Some(_) => Err("`policy` must be `allow`, `elevated` or `deny`".to_owned()),
    }
}

/// Reads a server that the configuration declares under a name.
pub fn declared(name: &str, said: serde_json::Value) -> Result<McpServer, String> {
    let mut new: NewServer = serde_json::from_value(said).map_err(|error| error.to_string())?;
    if !new.id.is_empty() && new.id != name {
        return Err("`id` is the name of the table; leave it out".to_owned());
    }
    name.clone_into(&mut new.id);
    new.read(TenantId::default_tenant(), Timestamp::UNIX_EPOCH)
}
