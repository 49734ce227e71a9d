//! The accounts of people, as calls use them: whose they are, and where their values are stored.

use serde_json::json;

use super::external::{ExternalReference, SourceKind};
use super::{GrantId, Secret};
use crate::BoxFuture;
use crate::id::ActorId;
use crate::name::TenantId;
use crate::outcome::{CallError, ErrorCode};

/// Whose account it is, and at which provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AccountId {
    /// The tenant.
    pub tenant: TenantId,
    /// The person or service account.
    pub actor: ActorId,
    /// The name of the provider, or the [key](crate::mcp::mcp_provider) of an MCP server.
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

/// Returns what the logins of a person at issuers are stored under; credential names cannot contain `:`.
pub fn login_owner(actor: ActorId) -> String {
    format!("login:{actor}")
}

/// Returns the provider of a reference `account:NAME`.
pub fn provider_of(reference: &str) -> Option<&str> {
    match ExternalReference::parse(reference)?.ok()? {
        ExternalReference { kind: SourceKind::Account, path, .. } => Some(path),
        _ => None,
    }
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
    /// The person or service account; `None` for a token without an owner, which has no accounts.
    pub actor: Option<ActorId>,
}

impl AccountUser {
    /// Returns its account at a provider.
    pub fn account(&self, provider: &str) -> Option<AccountId> {
        let (tenant, actor) = (self.tenant.clone(), self.actor?);
        Some(AccountId { tenant, actor, provider: provider.to_owned() })
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
pub fn account_required(user: &AccountUser, provider: &str, url: &str) -> CallError {
    if user.actor.is_none() {
        let message = format!(
            "the tool needs an account at `{provider}`, but the token has no owner; use a token of a person or a service account"
        );
        return CallError::new(ErrorCode::CredentialRequired, message)
            .with_details(json!({"provider": provider}));
    }
    let message =
        format!("the tool needs your account at `{provider}`; connect it at {url}, then call again");
    let details = json!({"provider": provider, "url": url});
    CallError::new(ErrorCode::CredentialRequired, message).with_details(details)
}
