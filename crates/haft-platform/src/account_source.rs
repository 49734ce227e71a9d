//! The accounts as calls use them. Nothing is cached: each use looks into the store.

use std::sync::{Arc, Weak};

use haft_core::BoxFuture;
use haft_core::account::{
    self, AccountId, AccountProvider, AccountRecord, AccountState, AccountUser, Accounts, OAuthProvider,
};
use haft_core::name::TenantId;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::secret::{Secret, SecretError, SecretSource};
use haft_executors::egress::Egress;
use haft_mcp::client::{OAuthError, ProviderClient, ProviderEndpoints, ProviderLogin};
use haft_store::Store;
use url::Url;

use crate::account_exchange::Exchanges;

/// The accounts of an installation.
pub(crate) struct AccountSource {
    pub(crate) store: Arc<Store>,
    pub(crate) egress: Egress,
    /// The URL of this installation, if it is configured.
    pub(crate) public_url: Option<String>,
    pub(crate) exchanges: Exchanges,
    /// What owns this.
    pub(crate) secrets: Weak<dyn SecretSource>,
}

impl AccountSource {
    /// Opens the login of somebody at a provider.
    pub(crate) async fn login(
        &self,
        account: &AccountId,
        oauth: &OAuthProvider,
    ) -> Result<ProviderLogin, OAuthError> {
        let client = self.client(&account.tenant, oauth).await?;
        ProviderLogin::new(&self.egress, client, account, Some(Arc::new(self.store.vault().clone())))
    }

    async fn client(&self, tenant: &TenantId, oauth: &OAuthProvider) -> Result<ProviderClient, OAuthError> {
        let url = |name: &str, text: &Option<String>| {
            let parse = |text: &String| {
                Url::parse(text)
                    .map_err(|error| OAuthError::Configuration(format!("`oauth.{name}`: {error}")))
            };
            text.as_ref().map(parse).transpose()
        };
        let client_secret = match &oauth.client_secret {
            Some(reference) => Some(self.reference(tenant, reference).await.map_err(|error| {
                OAuthError::Configuration(format!("`oauth.client_secret`: {}", error.message))
            })?),
            None => None,
        };
        Ok(ProviderClient {
            endpoints: ProviderEndpoints {
                issuer: url("issuer", &oauth.issuer)?,
                authorization_endpoint: url("authorization_endpoint", &oauth.authorization_endpoint)?,
                token_endpoint: url("token_endpoint", &oauth.token_endpoint)?,
                device_authorization_endpoint: url(
                    "device_authorization_endpoint",
                    &oauth.device_authorization_endpoint,
                )?,
            },
            client_id: oauth.client_id.clone(),
            client_secret,
            scopes: oauth.scopes.clone(),
        })
    }

    /// Returns the value of `${NAME}`.
    async fn reference(&self, tenant: &TenantId, reference: &str) -> Result<Secret, CallError> {
        let name = reference.trim().trim_start_matches("${").trim_end_matches('}').trim();
        let secrets = self.secrets.upgrade().ok_or_else(|| CallError::internal("the server is stopping"))?;
        let found = secrets.secret(tenant, name).await.map_err(|error| CallError::from(&error))?;
        found.ok_or_else(|| {
            CallError::new(ErrorCode::SecretMissing, haft_core::secret::missing_secret(name))
                .for_model("a credential of this tool is not configured")
        })
    }

    /// Returns the account of somebody, if it can be used, and notes its use.
    async fn usable(&self, user: &AccountUser, provider: &str) -> Result<Option<AccountRecord>, CallError> {
        let Some(id) = user.account(provider) else { return Ok(None) };
        let found = self.store.accounts().used(&id).await.map_err(|error| not_read(&error))?;
        Ok(found.filter(|account| account.state == AccountState::Connected))
    }

    async fn provider(&self, tenant: &TenantId, name: &str) -> Result<AccountProvider, CallError> {
        let found = self.store.accounts().provider(tenant, name).await.map_err(|error| not_read(&error))?;
        found.ok_or_else(|| {
            let message = format!(
                "the tool needs an account at `{name}`, but no provider has this name; define it with `PUT /api/account-providers/{name}`"
            );
            CallError::new(ErrorCode::SecretMissing, message)
                .for_model("a credential of this tool is not configured")
        })
    }

    /// Returns the value of an account; `None` if the person has to connect it again.
    async fn value_of(
        &self,
        account: &AccountRecord,
        provider: &AccountProvider,
    ) -> Result<Option<Secret>, CallError> {
        // The provider was replaced by one of another kind.
        if account.kind != provider.kind() {
            return Ok(None);
        }
        if let Some(exchange) = &provider.token_exchange {
            let secrets =
                self.secrets.upgrade().ok_or_else(|| CallError::internal("the server is stopping"))?;
            let token = self.exchanges.token((&self.store, &*secrets), account, exchange).await;
            return token.map_err(|error| unavailable(provider, &error));
        }
        match &provider.oauth {
            None => self.store.accounts().key(&account.id).await.map_err(|error| key_unreadable(&error)),
            Some(oauth) => {
                let login =
                    self.login(&account.id, oauth).await.map_err(|error| unavailable(provider, &error))?;
                login.token().await.map_err(|error| unavailable(provider, &error))
            }
        }
    }

    async fn find_value(&self, user: &AccountUser, provider: &str) -> Result<Secret, CallError> {
        let definition = self.provider(&user.tenant, provider).await?;
        if let Some(account) = self.usable(user, provider).await? {
            if let Some(value) = self.value_of(&account, &definition).await? {
                return Ok(value);
            }
            self.note_expired(&account.id).await;
        }
        match &definition.shared {
            Some(reference) => self.reference(&user.tenant, reference).await,
            None => Err(self.required(user, provider)),
        }
    }

    async fn note_expired(&self, id: &AccountId) {
        match self.store.accounts().expire(id).await {
            Ok(true) => {
                tracing::info!(tenant = %id.tenant, actor = %id.actor, provider = id.provider, "an account has expired");
            }
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "failed to note that an account has expired"),
        }
    }
}

impl Accounts for AccountSource {
    fn value<'a>(
        &'a self,
        user: &'a AccountUser,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Secret, CallError>> {
        Box::pin(self.find_value(user, provider))
    }

    fn version<'a>(
        &'a self,
        user: &'a AccountUser,
        provider: &'a str,
    ) -> BoxFuture<'a, Result<Option<i64>, CallError>> {
        Box::pin(async move {
            if let Some(account) = self.usable(user, provider).await? {
                return Ok(Some(account.version));
            }
            if provider.contains(':') {
                return Ok(None);
            }
            let shared = self.provider(&user.tenant, provider).await?.shared;
            Ok(shared.map(|_| 0))
        })
    }

    fn expire<'a>(&'a self, user: &'a AccountUser, provider: &'a str) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if let Some(id) = user.account(provider) {
                self.note_expired(&id).await;
            }
        })
    }

    fn required(&self, user: &AccountUser, provider: &str) -> CallError {
        let base = self.public_url.as_deref().unwrap_or_default().trim_end_matches('/');
        account::account_required(user, provider, &format!("{base}{}", account::connect_path(provider)))
    }
}

fn not_read(error: &haft_core::catalog::StoreError) -> CallError {
    CallError::new(ErrorCode::StoreUnavailable, error.to_string())
        .for_model("the accounts are unavailable at the moment; retry later")
}

fn key_unreadable(error: &SecretError) -> CallError {
    CallError::internal(format!("{error}: {}", error.source))
}

/// Returns the error of a call whose token cannot be renewed at the moment. It does not tell what the provider said.
fn unavailable(provider: &AccountProvider, error: &dyn std::fmt::Display) -> CallError {
    let message = format!("no access token of `{}`: {error}", provider.name);
    CallError::new(ErrorCode::Network, message)
        .for_model("the provider of the account of this tool is unavailable")
}
