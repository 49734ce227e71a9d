//! Accounts of people at providers.

use haft_core::Timestamp;
pub use haft_core::account::{AccountKind, AccountProvider, AccountState, OAuthProvider};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::people::ActorName;

/// What somebody has connected at a provider, without the value.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AccountView {
    pub kind: AccountKind,
    pub state: AccountState,
    /// The scope that the provider granted.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "repo")]
    pub scope: Option<String>,
    /// When the person first connected.
    pub created_at: Timestamp,
    /// When the person last connected.
    pub modified_at: Timestamp,
    /// When a call last used it, to the minute.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub last_used_at: Option<Timestamp>,
}

/// Something that an account can be connected at, and the account there.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct ConnectableView {
    /// The name of the provider, or `mcp:` and the id of an MCP server.
    #[schema(example = "github")]
    pub provider: String,
    #[schema(example = "GitHub")]
    pub display_name: String,
    /// How to connect.
    pub help: String,
    /// Whether the person logs in or enters an API key.
    pub kind: AccountKind,
    /// Whether calls work without an account, with a shared credential.
    pub has_shared: bool,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub account: Option<AccountView>,
}

/// What somebody has connected, and what can be connected.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AccountList {
    pub accounts: Vec<ConnectableView>,
}

/// An API key that a person enters.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct ApiKeyBody {
    /// The key, without line breaks.
    #[schema(example = "s3cr3t", max_length = 16384)]
    pub api_key: String,
}

/// A login at a provider that has begun.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StartedConnection {
    /// Where the person logs in, within ten minutes and in a browser in which the person is logged in to haft.
    pub authorization_url: String,
    /// Where the provider sends the browser back to.
    pub redirect_uri: String,
}

/// The providers of a tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AccountProviderList {
    pub providers: Vec<AccountProvider>,
    /// Where providers send the browser back to after a login; register it at the provider.
    #[schema(example = "https://haft.example.com/api/accounts/callback")]
    pub redirect_uri: String,
}

/// Who has an account at a provider.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AccountHolders {
    /// The first 100.
    pub actors: Vec<ActorName>,
    /// The number of all of them.
    #[schema(minimum = 0)]
    pub total: i64,
}

/// The definition of a provider; its name is in the path.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct AccountProviderBody {
    /// The name for people.
    #[serde(default)]
    #[schema(example = "GitHub")]
    pub display_name: String,
    /// How to get the key, or what the login is for.
    #[serde(default)]
    pub help: String,
    /// The credential `${NAME}` for callers without an account; without one, each needs an account.
    #[schema(example = "${GITHUB_TOKEN}")]
    pub shared: Option<String>,
    /// The OAuth client; without one, people enter an API key.
    pub oauth: Option<OAuthProvider>,
}
