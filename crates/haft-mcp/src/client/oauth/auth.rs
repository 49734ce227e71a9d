//! The access tokens of one connection: used while valid, renewed by one request at a time.

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::mcp::OAuthGrant;
use haft_core::secret::Secret;
use haft_executors::egress::Egress;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use url::Url;

use super::assertion::assertion;
use super::challenge::Challenge;
use super::client::Client;
use super::error::OAuthError;
use super::login_store::{Login, LoginLease, LoginStore};
use super::metadata::{Discovered, ProviderEndpoints, discover};
use super::token::{Grant, TokenRequest, Tokens, now, request_tokens};

/// The OAuth settings of a server, with secrets resolved.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct OAuthConfig {
    pub(in crate::client) client_id: Option<String>,
    pub(in crate::client) client_secret: Option<Secret>,
    /// Signs assertions, in place of a secret.
    pub(in crate::client) private_key: Option<Secret>,
    pub(in crate::client) scopes: Vec<String>,
    pub(in crate::client) grant: OAuthGrant,
}

impl OAuthConfig {
    pub(super) fn scope(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| self.scopes.join(" "))
    }
}

/// Provides the access tokens of one connection.
pub(in crate::client) struct Auth {
    pub(super) egress: Egress,
    pub(super) server: Url,
    pub(super) config: OAuthConfig,
    /// The endpoints of a provider; those of an MCP server are discovered.
    provider: Option<ProviderEndpoints>,
    pub(super) store: LoginStore,
    slot: Arc<AsyncMutex<Slot>>,
    challenge: Mutex<Challenge>,
    /// Notified when the server requires a login and there is none.
    pub(in crate::client) rejected: Notify,
}

#[derive(Default)]
struct Slot {
    login: Option<Login>,
    /// Whether the stored login was loaded.
    loaded: bool,
}

impl Auth {
    pub(in crate::client) fn new(
        egress: Egress,
        server: Url,
        config: OAuthConfig,
        store: LoginStore,
    ) -> Self {
        Self {
            egress,
            server,
            config,
            provider: None,
            store,
            slot: Arc::default(),
            challenge: Mutex::default(),
            rejected: Notify::new(),
        }
    }

    /// Returns the same for the login in another store.
    pub(in crate::client) fn with_store(&self, store: LoginStore) -> Self {
        let auth = Self::new(self.egress.clone(), self.server.clone(), self.config.clone(), store);
        auth.set_challenge(self.challenge());
        auth
    }

    /// Uses the endpoints of a provider.
    pub(super) fn at_provider(mut self, endpoints: ProviderEndpoints) -> Self {
        self.provider = Some(endpoints);
        self
    }

    /// Returns the endpoints.
    pub(super) async fn discover(&self) -> Result<Discovered, OAuthError> {
        match &self.provider {
            Some(endpoints) => endpoints.discover(&self.egress).await,
            None => discover(&self.egress, &self.server, &self.challenge()).await,
        }
    }

    /// Returns the last challenge of the server.
    pub(in crate::client) fn challenge(&self) -> Challenge {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the challenge of the server.
    pub(in crate::client) fn set_challenge(&self, challenge: Challenge) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = challenge;
    }

    /// Returns a valid token; `None` without a login.
    pub(in crate::client) async fn token(self: &Arc<Self>) -> Result<Option<Secret>, OAuthError> {
        {
            let mut slot = self.slot.lock().await;
            if !slot.loaded {
                slot.login = self.store.read().await?.filter(|login| self.matches(login));
                slot.loaded = true;
            }
            let Some(tokens) = slot.login.as_ref().and_then(|login| login.tokens.as_ref()) else {
                return Ok(None);
            };
            // A token that cannot be renewed is used until the server rejects it.
            let renewable = tokens.refresh.is_some() || self.config.grant == OAuthGrant::ClientCredentials;
            if tokens.are_valid() || !renewable {
                return Ok(Some(tokens.access.clone()));
            }
        }
        self.renew(None).await
    }

    /// Renews a rejected token; `None` where a person has to log in.
    ///
    /// Runs in its own task, so that a cancelled caller does not lose a rotated refresh token.
    pub(in crate::client) async fn renew(
        self: &Arc<Self>,
        used: Option<&Secret>,
    ) -> Result<Option<Secret>, OAuthError> {
        let (this, used) = (Arc::clone(self), used.cloned());
        let renewing = tokio::spawn(async move {
            let mut slot = Arc::clone(&this.slot).lock_owned().await;
            let have = slot.login.as_ref().and_then(|login| login.tokens.as_ref());
            let other = have.filter(|tokens| tokens.are_valid() && used.as_ref() != Some(&tokens.access));
            if let Some(tokens) = other {
                // An earlier caller has renewed it.
                return Ok(Some(tokens.access.clone()));
            }
            let renewed = match this.config.grant {
                OAuthGrant::ClientCredentials => this.client_credentials().await.map(Some),
                OAuthGrant::AuthorizationCode => this.refresh(used.as_ref()).await,
            };
            let login = renewed?;
            let access = login.as_ref().and_then(|login| login.tokens.as_ref()).map(|t| t.access.clone());
            slot.login = login;
            Ok(access)
        });
        renewing
            .await
            .unwrap_or_else(|_| Err(OAuthError::Store("the task that renews the token failed".into())))
    }

    /// Uses the refresh token, and stores the next one before the lease ends.
    async fn refresh(&self, used: Option<&Secret>) -> Result<Option<Login>, OAuthError> {
        // Without a login there is no need to wait for the lease.
        let stored = self.store.read().await?;
        if !stored.is_some_and(|login| login.tokens.is_some() && self.matches(&login)) {
            return Ok(None);
        }
        let lease = self.store.begin().await?;
        let Some(mut login) = lease.login.clone().filter(|login| self.matches(login)) else {
            return self.store.end(lease, None).await.map(|()| None);
        };
        self.fill_secret(&mut login);
        let Some(tokens) = &login.tokens else {
            return self.store.end(lease, Some(&login)).await.map(|()| None);
        };
        // Another process may have renewed it.
        if tokens.are_valid() && used != Some(&tokens.access) {
            return self.store.end(lease, Some(&login)).await.map(|()| Some(login));
        }
        let result = match &tokens.refresh {
            Some(refresh) => {
                request_tokens(&self.egress, token_request(&login), Grant::Refresh(refresh)).await
            }
            None => Err(OAuthError::NeedsLogin),
        };
        match result {
            Ok(mut fresh) => {
                let Tokens { refresh, scope, .. } = tokens.clone();
                fresh.refresh = fresh.refresh.or(refresh);
                fresh.scope = fresh.scope.or(scope);
                login.tokens = Some(fresh);
                self.save(lease, &login).await;
                Ok(Some(login))
            }
            Err(error) if error.is_rejection() || matches!(error, OAuthError::NeedsLogin) => {
                tracing::info!(server = %self.server.host_str().unwrap_or_default(), %error, "a login to an MCP server has expired");
                login.tokens = None;
                self.save(lease, &login).await;
                Ok(None)
            }
            Err(error) => {
                self.save(lease, &login).await;
                Err(error)
            }
        }
    }

    async fn save(&self, lease: LoginLease, login: &Login) {
        if let Err(error) = self.store.end(lease, Some(login)).await {
            tracing::error!(%error, "failed to store a renewed login to an MCP server");
        }
    }

    /// Requests a token with the client credentials grant.
    async fn client_credentials(&self) -> Result<Login, OAuthError> {
        let found = self.discover().await?;
        let Some(id) = &self.config.client_id else {
            let message = "missing `oauth.client_id`, required by the grant `client_credentials`";
            return Err(OAuthError::Configuration(message.to_owned()));
        };
        let client = Client::configured(id, self.config.client_secret.as_ref(), &found.issuer);
        let scope = self.config.scope().or(found.scope);
        let mut login = Login {
            server: self.server.to_string(),
            resource: found.resource,
            issuer: found.issuer.name,
            token_endpoint: found.issuer.token_endpoint,
            client,
            registered: false,
            redirect: String::new(),
            tokens: None,
        };
        let request = TokenRequest { scope: scope.as_deref(), ..token_request(&login) };
        let signed = self.config.private_key.as_ref().map(|key| {
            let audience = login.issuer.as_deref().unwrap_or_else(|| login.token_endpoint.as_str());
            assertion(key, &login.client.id, audience, now().as_second())
        });
        let tokens =
            request_tokens(&self.egress, request, Grant::ClientCredentials(signed.transpose()?)).await?;
        login.tokens = Some(tokens);
        Ok(login)
    }

    /// Returns whether a login belongs to this server and this client.
    pub(super) fn matches(&self, login: &Login) -> bool {
        let same_client = match &self.config.client_id {
            Some(id) => !login.registered && login.client.id == *id,
            None => login.registered,
        };
        login.server == self.server.as_str() && same_client
    }

    pub(super) fn fill_secret(&self, login: &mut Login) {
        if !login.registered {
            login.client.secret.clone_from(&self.config.client_secret);
        }
    }
}

fn token_request(login: &Login) -> TokenRequest<'_> {
    TokenRequest {
        endpoint: &login.token_endpoint,
        client: &login.client,
        resource: &login.resource,
        scope: None,
    }
}
