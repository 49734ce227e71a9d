//! Logins of people at providers that an admin has defined.

use std::sync::Arc;

use haft_core::account::AccountId;
use haft_core::secret::{RefreshTokens, Secret};
use haft_executors::egress::Egress;
use url::Url;

use super::auth::{Auth, OAuthConfig};
use super::device::{self, BegunDeviceLogin, DevicePoll};
use super::error::OAuthError;
use super::login::{BegunLogin, Callback, begin, finish};
use super::login_store::LoginStore;
use super::metadata::ProviderEndpoints;

/// The OAuth client of haft at a provider, with its secret resolved.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    /// Where it logs in.
    pub endpoints: ProviderEndpoints,
    /// The id of the client.
    pub client_id: String,
    /// The client secret.
    pub client_secret: Option<Secret>,
    /// The scopes to request.
    pub scopes: Vec<String>,
}

/// The login of one person at a provider.
pub struct ProviderLogin {
    auth: Arc<Auth>,
}

impl ProviderLogin {
    /// Returns the login of an account.
    pub fn new(
        egress: &Egress,
        client: ProviderClient,
        account: &AccountId,
        store: Option<Arc<dyn RefreshTokens>>,
    ) -> Result<Self, OAuthError> {
        let server = client.endpoints.server()?.clone();
        let config = OAuthConfig {
            client_id: Some(client.client_id),
            client_secret: client.client_secret,
            scopes: client.scopes,
            ..OAuthConfig::default()
        };
        let store = LoginStore::of_account(account, store);
        let auth = Auth::new(egress.clone(), server, config, store).at_provider(client.endpoints);
        Ok(Self { auth: Arc::new(auth) })
    }

    /// Begins a login.
    pub async fn begin(&self, redirect: &Url) -> Result<BegunLogin, OAuthError> {
        begin(&self.auth, redirect).await
    }

    /// Begins a login that the person completes with a code on any device.
    pub async fn begin_device(&self) -> Result<BegunDeviceLogin, OAuthError> {
        device::begin(&self.auth).await
    }

    /// Returns a valid token, refreshed if necessary; `None` if the person has to log in again.
    pub async fn token(&self) -> Result<Option<Secret>, OAuthError> {
        self.auth.token().await
    }
}

/// Completes the login of a person, at a provider or at an MCP server; returns the granted scope.
pub async fn finish_login(
    egress: &Egress,
    account: &AccountId,
    store: Option<Arc<dyn RefreshTokens>>,
    data: &Secret,
    callback: Callback,
) -> Result<Option<String>, OAuthError> {
    finish(egress, &LoginStore::of_account(account, store), data, callback).await
}

/// Asks for the result of a login with a code; stores its tokens.
pub async fn poll_device_login(
    egress: &Egress,
    account: &AccountId,
    store: Option<Arc<dyn RefreshTokens>>,
    data: &Secret,
) -> Result<DevicePoll, OAuthError> {
    device::poll(egress, &LoginStore::of_account(account, store), data).await
}
