//! Accounts: what a person or a service account has stored at a provider, such as a login or an API key, so that calls on
//! its behalf act as that person there and not as everybody.
//!
//! A provider is defined by an admin and has a name, or it is an MCP server. Nobody uses the account of another.

use serde::{Deserialize, Serialize};

use crate::id::ActorId;
use crate::mcp::{McpServer, Transport};
use crate::name::TenantId;
use crate::outcome::{CallError, ErrorCode};
use crate::principal::Principal;
use crate::secret::{ExternalReference, GrantId, Secret, SourceKind};
use crate::{BoxFuture, Timestamp};

/// The maximum length of the name of a provider, in characters.
const MAX_NAME: usize = 64;
/// The maximum length of an API key, in bytes.
pub const MAX_API_KEY: usize = 16 * 1024;

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
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde needs")]
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

/// What an account holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// The tokens of a login.
    Oauth,
    /// A key that the person entered.
    ApiKey,
}

impl AccountKind {
    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oauth => "oauth",
            Self::ApiKey => "api_key",
        }
    }

    /// Parses the name that [`AccountKind::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Oauth, Self::ApiKey].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Whether an account can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AccountState {
    /// It can be used.
    Connected,
    /// The provider no longer accepts it; the person has to connect again.
    Expired,
}

impl AccountState {
    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Expired => "expired",
        }
    }

    /// Parses the name that [`AccountState::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Connected, Self::Expired].into_iter().find(|state| state.as_str() == text)
    }
}

/// Whose account it is, and at which provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountId {
    /// The tenant.
    pub tenant: TenantId,
    /// The person or service account.
    pub actor: ActorId,
    /// The name of the provider, or the [key](mcp_provider) of an MCP server.
    pub provider: String,
}

impl AccountId {
    /// Returns where its value is stored.
    pub fn grant(&self) -> GrantId {
        GrantId {
            tenant: self.tenant.clone(),
            key: format!("{}:{}", grant_owner(self.actor), self.provider),
            credential: grant_owner(self.actor),
        }
    }
}

/// Returns what the values of all accounts of somebody are stored under; credential names cannot contain `:`.
pub fn grant_owner(actor: ActorId) -> String {
    format!("account:{actor}")
}

/// An account without its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountRecord {
    /// Whose it is, and where.
    pub id: AccountId,
    /// What it holds.
    pub kind: AccountKind,
    /// The scope that the provider granted.
    pub scope: Option<String>,
    /// Whether it can be used.
    pub state: AccountState,
    /// Changes whenever the person connects again.
    pub version: i64,
    /// When the person first connected.
    pub created_at: Timestamp,
    /// When the person last connected.
    pub modified_at: Timestamp,
    /// When a call last used it; written once a minute at most.
    pub last_used_at: Option<Timestamp>,
}

/// A provider that an admin has defined: calls get the account of their person there as `${account:NAME}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AccountProvider {
    /// The name.
    #[cfg_attr(feature = "openapi", schema(example = "github"))]
    pub name: String,
    /// The name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(example = "GitHub"))]
    pub display_name: String,
    /// How to get the key, or what the login is for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[cfg_attr(feature = "openapi", schema(example = "Create a token at github.com/settings/tokens."))]
    pub help: String,
    /// The credential `${NAME}` that is used for callers without an account; without one, each needs an account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "${GITHUB_TOKEN}"))]
    pub shared: Option<String>,
    /// The OAuth client; without one, people enter an API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<OAuthProvider>,
}

impl AccountProvider {
    /// Returns what its accounts hold.
    pub fn kind(&self) -> AccountKind {
        if self.oauth.is_some() { AccountKind::Oauth } else { AccountKind::ApiKey }
    }
}

/// The OAuth client of haft at a provider. The endpoints are those of `issuer`, if it is set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct OAuthProvider {
    /// The issuer, whose metadata has the endpoints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "https://login.example.com"))]
    pub issuer: Option<String>,
    /// Where people log in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authorization_endpoint: Option<String>,
    /// Where haft gets tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint: Option<String>,
    /// The id of the client.
    pub client_id: String,
    /// The client secret, as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// Returns the key of an MCP server as a provider; names of providers cannot contain `:`.
pub fn mcp_provider(id: &str) -> String {
    format!("mcp:{id}")
}

/// Checks the name of a provider.
pub fn check_provider_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME || !name.chars().all(is_plain) {
        return Err("expected 1 to 64 lower-case letters, digits, `_` and `-`");
    }
    Ok(())
}

/// Checks an API key that a person entered. The error does not show it.
pub fn check_api_key(key: &str) -> Result<(), &'static str> {
    if key.is_empty() {
        return Err("it is empty");
    }
    if key.len() > MAX_API_KEY {
        return Err("it exceeds the limit of 16384 bytes");
    }
    // It becomes part of a header or of a command line.
    if key.chars().any(|c| c.is_control() || c == '\u{2028}' || c == '\u{2029}') {
        return Err("it contains a line break or another control character");
    }
    Ok(())
}

/// Returns the provider of a reference `account:NAME`.
pub fn provider_of(reference: &str) -> Option<&str> {
    match ExternalReference::parse(reference)?.ok()? {
        ExternalReference { kind: SourceKind::Account, path, .. } => Some(path),
        _ => None,
    }
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

/// Returns the path of the page on which a person connects an account.
pub fn connect_path(provider: &str) -> String {
    format!("/ui/accounts?connect={provider}")
}

/// On whose behalf an account is used.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountUser {
    /// The tenant.
    pub tenant: TenantId,
    /// The person or service account; `None` for a token of its own, which has no accounts.
    pub actor: Option<ActorId>,
}

impl AccountUser {
    /// Returns its account at a provider.
    pub fn account(&self, provider: &str) -> Option<AccountId> {
        let (tenant, actor) = (self.tenant.clone(), self.actor?);
        Some(AccountId { tenant, actor, provider: provider.to_owned() })
    }
}

impl From<&Principal> for AccountUser {
    fn from(principal: &Principal) -> Self {
        let actor = principal.actor.as_ref().map(|actor| actor.id);
        Self { tenant: principal.tenant.clone(), actor }
    }
}

/// The accounts, as calls use them. Each use looks into the store: an account that was revoked on another node is gone.
pub trait Accounts: Send + Sync {
    /// Returns the API key or a valid access token of the user at a provider, or the shared credential of the provider.
    fn value<'a>(
        &'a self,
        user: &'a AccountUser,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Secret, CallError>>;

    /// Returns the version of the user's account at a provider, and notes its use; `None` if there is no account that can
    /// be used.
    fn version<'a>(
        &'a self,
        user: &'a AccountUser,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, CallError>>;

    /// Notes that a provider no longer accepts an account.
    fn expire<'a>(&'a self, user: &'a AccountUser, provider: &'a str) -> BoxFuture<'a, ()>;

    /// Returns the error of a call that needs an account at a provider.
    fn required(&self, user: &AccountUser, provider: &str) -> CallError;
}

/// Returns the error of a call that needs an account; `url` is where its person connects one.
pub fn required(user: &AccountUser, provider: &str, url: &str) -> CallError {
    if user.actor.is_none() {
        let message = format!(
            "the tool needs an account at `{provider}`, but the token belongs to no person; use a token of a person or a service account"
        );
        return CallError::new(ErrorCode::CredentialRequired, message)
            .with_details(serde_json::json!({"provider": provider}));
    }
    let message =
        format!("the tool needs your account at `{provider}`; connect it at {url}, then call again");
    let details = serde_json::json!({"provider": provider, "url": url});
    CallError::new(ErrorCode::CredentialRequired, message).with_details(details)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mcp::StreamableHttp;
    use crate::name::BundleSlug;

    #[test]
    fn names_of_providers() {
        let long = "x".repeat(65);
        for (name, is_valid) in [
            ("github", true),
            ("git-hub_2", true),
            ("", false),
            ("GitHub", false),
            ("mcp:github", false),
            ("a/b", false),
            (&*long, false),
        ] {
            assert_eq!(check_provider_name(name).is_ok(), is_valid, "{name}");
        }
    }

    #[test]
    fn api_keys_have_no_line_breaks() {
        let (longest, too_long) = ("x".repeat(MAX_API_KEY), "x".repeat(MAX_API_KEY + 1));
        for (key, is_valid) in [
            ("k3y", true),
            ("ключ", true),
            ("a b", true),
            (&*longest, true),
            (&*too_long, false),
            ("", false),
            ("a\r\nX-Admin: 1", false),
            ("a\n", false),
            ("a\0", false),
            ("a\u{2028}b", false),
        ] {
            assert_eq!(check_api_key(key).is_ok(), is_valid, "{}", key.escape_debug());
        }
    }

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
