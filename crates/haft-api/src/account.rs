//! Accounts of people at providers.

use haft_core::Timestamp;
pub use haft_core::account::{
    AccountKind, AccountProvider, AccountState, OAuthProvider, TokenExchangeProvider,
};
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

/// How to log in at a provider.
#[derive(Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default, expecting = "an object")]
pub struct ConnectBody {
    /// Without it, the login happens in a browser, unless the provider only has codes.
    pub flow: Option<ConnectFlow>,
}

/// How a person logs in at a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConnectFlow {
    /// In a browser, which comes back to haft.
    Browser,
    /// With a code on any device (RFC 8628).
    Device,
}

/// A login at a provider that has begun.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StartedConnection {
    /// Where the person logs in; without `device` within ten minutes, in a browser in which the person is logged in to haft.
    pub authorization_url: String,
    /// Where the provider sends the browser back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
    /// The code, if the person logs in with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceConnectionView>,
}

/// A login with a code.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeviceConnectionView {
    /// The id, with which the state of the login can be read.
    pub id: String,
    /// The code that the person enters.
    #[schema(example = "WDJB-MJHT")]
    pub user_code: String,
    /// Where the person enters it.
    pub verification_uri: String,
    /// When the code stops working.
    pub expires_at: Timestamp,
}

/// The state of a login with a code.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DeviceConnectionStatus {
    pub state: DeviceConnectionStateView,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// When the code stops working.
    pub expires_at: Timestamp,
}

/// Whether a person has completed a login with a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceConnectionStateView {
    Pending,
    Connected,
    Failed,
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
    /// The exchange of the token of the person's login.
    pub token_exchange: Option<TokenExchangeProvider>,
}
