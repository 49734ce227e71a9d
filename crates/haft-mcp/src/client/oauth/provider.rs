//! Logins of people at providers that an admin has defined.

use std::sync::Arc;

use haft_core::account::AccountId;
use haft_core::secret::{RefreshTokens, Secret};
use haft_executors::egress::Egress;
use url::Url;

use super::auth::{Auth, OAuthConfig};
use super::error::OAuthError;
use super::login::{BegunLogin, Callback, begin, finish};
use super::login_store::LoginStore;
use super::metadata::{Discovered, Issuer, issuer};

/// The OAuth client of haft at a provider, with its secret resolved.
#[derive(Debug, Clone)]
pub struct ProviderClient {
    /// The issuer, whose metadata has the endpoints.
    pub issuer: Option<Url>,
    /// Where people log in.
    pub authorization_endpoint: Option<Url>,
    /// Where haft gets tokens.
    pub token_endpoint: Option<Url>,
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
    /// Finds the endpoints of the provider.
    pub async fn open(
        egress: &Egress,
        client: ProviderClient,
        account: &AccountId,
        store: Option<Arc<dyn RefreshTokens>>,
    ) -> Result<Self, OAuthError> {
        let found = endpoints(egress, &client).await?;
        let config = OAuthConfig {
            client_id: Some(client.client_id),
            client_secret: client.client_secret,
            scopes: client.scopes,
            ..OAuthConfig::default()
        };
        // A login is valid for one token endpoint.
        let server = found.issuer.token_endpoint.clone();
        let store = LoginStore::of_account(account, store);
        let auth = Auth::new(egress.clone(), server, config, store).at_provider(found);
        Ok(Self { auth: Arc::new(auth) })
    }

    /// Begins a login.
    pub async fn begin(&self, redirect: &Url) -> Result<BegunLogin, OAuthError> {
        begin(&self.auth, redirect).await
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

async fn endpoints(egress: &Egress, client: &ProviderClient) -> Result<Discovered, OAuthError> {
    let scope = None;
    if let Some(named) = &client.issuer {
        let found = issuer(egress, named, named.as_str()).await?;
        let issuer = found.ok_or_else(|| {
            let host = named.host_str().unwrap_or_default();
            OAuthError::Metadata(format!("the issuer at `{host}` has no metadata"))
        })?;
        return Ok(Discovered { resource: String::new(), scope, issuer });
    }
    let token_endpoint = client.token_endpoint.clone();
    let token_endpoint = token_endpoint
        .ok_or_else(|| OAuthError::Configuration("the provider has no token endpoint".to_owned()))?;
    let issuer = Issuer {
        name: None,
        authorization_endpoint: client.authorization_endpoint.clone(),
        token_endpoint,
        registration_endpoint: None,
        auth_methods: None,
        names_itself: false,
        supports_s256: true,
        has_offline_access: false,
    };
    Ok(Discovered { resource: String::new(), scope, issuer })
}
