//! Accounts: what a person or a service account has stored at a provider, such as a login or an API key, so that calls on
//! its behalf act as that person there and not as everybody.
//!
//! A provider is defined by an admin and has a name, or it is an MCP server. Nobody uses the account of another.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::principal::Principal;
pub use crate::secret::{
    AccountId, AccountUser, Accounts, account_required, check_provider_name, connect_path, grant_owner,
    provider_of,
};

/// The maximum length of an API key, in bytes.
pub const MAX_API_KEY: usize = 16 * 1024;

/// What an account holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum AccountKind {
    /// The tokens of a login.
    Oauth,
    /// A key that the person entered.
    ApiKey,
    /// Nothing of its own: the issuer of the person's login issues tokens for it.
    TokenExchange,
}

impl AccountKind {
    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Oauth => "oauth",
            Self::ApiKey => "api_key",
            Self::TokenExchange => "token_exchange",
        }
    }

    /// Parses the name that [`AccountKind::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Oauth, Self::ApiKey, Self::TokenExchange].into_iter().find(|kind| kind.as_str() == text)
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
    /// The exchange of the token of the person's login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_exchange: Option<TokenExchangeProvider>,
}

impl AccountProvider {
    /// Returns what its accounts hold.
    pub fn kind(&self) -> AccountKind {
        match (&self.token_exchange, &self.oauth) {
            (Some(_), _) => AccountKind::TokenExchange,
            (None, Some(_)) => AccountKind::Oauth,
            (None, None) => AccountKind::ApiKey,
        }
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
    /// Where haft gets codes with which people log in on another device; overrides that of the issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_authorization_endpoint: Option<String>,
    /// The id of the client.
    pub client_id: String,
    /// The client secret, as `${NAME}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

/// The exchange of the token of a person's login at an issuer for one of another service (RFC 8693).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct TokenExchangeProvider {
    /// The id of the issuer in the configuration.
    #[cfg_attr(feature = "openapi", schema(example = "corp"))]
    pub issuer: String,
    /// The name of the service at the issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "crm"))]
    pub audience: Option<String>,
    /// The URL of the service, in place of `audience`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The scopes to request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
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

impl From<&Principal> for AccountUser {
    fn from(principal: &Principal) -> Self {
        let actor = principal.actor.as_ref().map(|actor| actor.id);
        Self { tenant: principal.tenant.clone(), actor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
