//! Stored logins: encrypted, and changed by one process at a time.

use std::sync::Arc;

use haft_core::account::AccountId;
use haft_core::name::{BundleSlug, TenantId};
use haft_core::secret::{GrantId, RefreshTokens, Secret, SecretError};
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::{Client, ClientAuthMethod};
use super::error::OAuthError;
use super::token::Tokens;

/// A login.
#[derive(Clone)]
pub(super) struct Login {
    /// The URL of the server; the login is invalid for any other.
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: Option<String>,
    pub(super) token_endpoint: Url,
    pub(super) client: Client,
    /// Whether haft registered the client; otherwise its secret is in the configuration.
    pub(super) registered: bool,
    /// The redirect URL of the client.
    pub(super) redirect: String,
    /// `None` after the authorization server has rejected them: only the client is left.
    pub(super) tokens: Option<Tokens>,
}

/// The stored form.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredLogin {
    server: String,
    resource: String,
    issuer: Option<String>,
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    #[serde(rename = "proof")]
    auth_method: ClientAuthMethod,
    registered: bool,
    redirect: String,
    access: Option<String>,
    refresh: Option<String>,
    renew_at: Option<i64>,
    scope: Option<String>,
}

impl Login {
    fn to_stored(&self) -> Secret {
        // The secret of a configured client stays in the configuration.
        let secret = self.client.secret.as_ref().filter(|_| self.registered);
        Secret::new(serde_json::to_string(&self.stored(secret)).unwrap_or_default())
    }

    /// Returns the stored form with this secret of the client.
    pub(super) fn stored(&self, secret: Option<&Secret>) -> StoredLogin {
        let tokens = self.tokens.as_ref();
        let exposed = |secret: &Secret| secret.expose().to_owned();
        StoredLogin {
            server: self.server.clone(),
            resource: self.resource.clone(),
            issuer: self.issuer.clone(),
            token_endpoint: self.token_endpoint.to_string(),
            client_id: self.client.id.clone(),
            client_secret: secret.map(exposed),
            auth_method: self.client.auth_method,
            registered: self.registered,
            redirect: self.redirect.clone(),
            access: tokens.map(|tokens| exposed(&tokens.access)),
            refresh: tokens.and_then(|tokens| tokens.refresh.as_ref()).map(exposed),
            renew_at: tokens.and_then(|tokens| tokens.renew_at),
            scope: tokens.and_then(|tokens| tokens.scope.clone()),
        }
    }

    fn from_stored(text: &Secret) -> Option<Self> {
        Self::of(serde_json::from_str(text.expose()).ok()?)
    }

    pub(super) fn of(stored: StoredLogin) -> Option<Self> {
        let tokens = stored.access.map(|access| Tokens {
            access: Secret::new(access),
            refresh: stored.refresh.map(Secret::new),
            renew_at: stored.renew_at,
            scope: stored.scope,
        });
        let secret = stored.client_secret.map(Secret::new);
        Some(Self {
            server: stored.server,
            resource: stored.resource,
            issuer: stored.issuer,
            token_endpoint: Url::parse(&stored.token_endpoint).ok()?,
            client: Client { id: stored.client_id, secret, auth_method: stored.auth_method },
            registered: stored.registered,
            redirect: stored.redirect,
            tokens,
        })
    }
}

/// Stores the login to one server.
#[derive(Clone)]
pub(in crate::client) struct LoginStore {
    store: Option<Arc<dyn RefreshTokens>>,
    grant: GrantId,
}

/// The exclusive right to change a login.
pub(super) struct LoginLease {
    pub(super) login: Option<Login>,
    number: i64,
}

impl LoginStore {
    /// Returns the store of the login that all callers of a server share.
    pub(in crate::client) fn shared(
        (tenant, id): (&TenantId, &BundleSlug),
        store: Option<Arc<dyn RefreshTokens>>,
    ) -> Self {
        // No credential can have this name. The store deletes it together with the server.
        let key = haft_core::mcp::login_key(id);
        Self { store, grant: GrantId { tenant: tenant.clone(), credential: key.clone(), key } }
    }

    /// Returns the store of an account.
    pub(in crate::client) fn of_account(account: &AccountId, store: Option<Arc<dyn RefreshTokens>>) -> Self {
        Self { store, grant: account.grant() }
    }

    pub(super) async fn read(&self) -> Result<Option<Login>, OAuthError> {
        let Some(store) = &self.store else { return Ok(None) };
        let found = store.read(&self.grant).await.map_err(store_error)?;
        Ok(found.as_ref().and_then(Login::from_stored))
    }

    pub(super) async fn begin(&self) -> Result<LoginLease, OAuthError> {
        let Some(store) = &self.store else { return Ok(LoginLease { login: None, number: 0 }) };
        let turn = store.begin(&self.grant).await.map_err(store_error)?;
        Ok(LoginLease { login: turn.token.as_ref().and_then(Login::from_stored), number: turn.number })
    }

    pub(super) async fn end(&self, lease: LoginLease, login: Option<&Login>) -> Result<(), OAuthError> {
        let Some(store) = &self.store else { return Ok(()) };
        let stored = login.map(Login::to_stored);
        store.end(&self.grant, lease.number, stored.as_ref()).await.map_err(store_error)
    }

    /// Deletes the login; returns whether there was one.
    pub(in crate::client) async fn delete(&self) -> Result<bool, OAuthError> {
        let lease = self.begin().await?;
        let existed = lease.login.as_ref().is_some_and(|login| login.tokens.is_some());
        self.end(lease, None).await?;
        Ok(existed)
    }
}

fn store_error(SecretError { source, .. }: SecretError) -> OAuthError {
    OAuthError::Store(source.to_string())
}
