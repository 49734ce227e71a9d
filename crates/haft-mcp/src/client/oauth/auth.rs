//! The tokens of one connection: used while they are good, renewed by one request at a time.

use std::sync::{Arc, Mutex, PoisonError};

use haft_core::mcp::OAuthGrant;
use haft_core::secret::Secret;
use haft_runtime::egress::Egress;
use tokio::sync::{Mutex as AsyncMutex, Notify};
use url::Url;

use super::assertion::assertion;
use super::challenge::Challenge;
use super::client::Client;
use super::error::OAuthError;
use super::metadata::discover;
use super::stored::{Kept, Login, Turn};
use super::token::{Ask, Grant, Tokens, ask, now};

/// What the configuration says, with its secrets put in.
#[derive(Debug, Clone, Default)]
pub(in crate::client) struct Configured {
    pub(in crate::client) client_id: Option<String>,
    pub(in crate::client) client_secret: Option<Secret>,
    /// What proves who it is in place of a secret.
    pub(in crate::client) private_key: Option<Secret>,
    pub(in crate::client) scopes: Vec<String>,
    pub(in crate::client) grant: OAuthGrant,
}

impl Configured {
    pub(super) fn scope(&self) -> Option<String> {
        (!self.scopes.is_empty()).then(|| self.scopes.join(" "))
    }
}

/// The tokens of one connection.
pub(in crate::client) struct Auth {
    pub(super) egress: Egress,
    pub(super) server: Url,
    pub(super) configured: Configured,
    kept: Kept,
    slot: Arc<AsyncMutex<Slot>>,
    challenge: Mutex<Challenge>,
    /// Told when the server wants a login that there is not.
    pub(in crate::client) refused: Notify,
}

#[derive(Default)]
struct Slot {
    login: Option<Login>,
    /// Whether what is kept was looked at.
    read: bool,
}

impl Auth {
    pub(in crate::client) fn new(egress: Egress, server: Url, configured: Configured, kept: Kept) -> Self {
        Self {
            egress,
            server,
            configured,
            kept,
            slot: Arc::default(),
            challenge: Mutex::default(),
            refused: Notify::new(),
        }
    }

    /// Returns what the server said when it last wanted a login.
    pub(in crate::client) fn challenge(&self) -> Challenge {
        self.challenge.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Remembers what the server wants.
    pub(in crate::client) fn wants(&self, challenge: Challenge) {
        *self.challenge.lock().unwrap_or_else(PoisonError::into_inner) = challenge;
    }

    /// Returns a good token; nothing where nobody has logged in.
    pub(in crate::client) async fn token(self: &Arc<Self>) -> Result<Option<Secret>, OAuthError> {
        {
            let mut slot = self.slot.lock().await;
            if !slot.read {
                slot.login = self.kept.read().await?.filter(|login| self.is_for(login));
                slot.read = true;
            }
            let Some(tokens) = slot.login.as_ref().and_then(|login| login.tokens.as_ref()) else {
                return Ok(None);
            };
            // One that cannot be renewed is good until the server says otherwise.
            let renewable =
                tokens.refresh.is_some() || self.configured.grant == OAuthGrant::ClientCredentials;
            if tokens.are_good() || !renewable {
                return Ok(Some(tokens.access.clone()));
            }
        }
        self.renew(None).await
    }

    /// Gets another token than one that the server did not take; nothing where a person has to log in.
    ///
    /// In a task of its own: a caller that gives up must not lose a refresh token that was just rotated.
    pub(in crate::client) async fn renew(
        self: &Arc<Self>,
        used: Option<&Secret>,
    ) -> Result<Option<Secret>, OAuthError> {
        let (this, used) = (Arc::clone(self), used.cloned());
        let renewing = tokio::spawn(async move {
            let mut slot = Arc::clone(&this.slot).lock_owned().await;
            let have = slot.login.as_ref().and_then(|login| login.tokens.as_ref());
            let other = have.filter(|tokens| tokens.are_good() && used.as_ref() != Some(&tokens.access));
            if let Some(tokens) = other {
                // Whoever came before has renewed it.
                return Ok(Some(tokens.access.clone()));
            }
            let renewed = match this.configured.grant {
                OAuthGrant::ClientCredentials => this.by_itself().await.map(Some),
                OAuthGrant::AuthorizationCode => this.refreshed(used.as_ref()).await,
            };
            let login = renewed?;
            let access = login.as_ref().and_then(|login| login.tokens.as_ref()).map(|t| t.access.clone());
            slot.login = login;
            Ok(access)
        });
        renewing
            .await
            .unwrap_or_else(|_| Err(OAuthError::Store("the task that renews a token failed".into())))
    }

    /// Asks with the refresh token; the next one is kept before anybody else may ask.
    async fn refreshed(&self, used: Option<&Secret>) -> Result<Option<Login>, OAuthError> {
        // Where nobody has logged in, there is nothing to wait for.
        let there = self.kept.read().await?;
        if !there.is_some_and(|login| login.tokens.is_some() && self.is_for(&login)) {
            return Ok(None);
        }
        let turn = self.kept.begin().await?;
        let Some(mut login) = turn.login.clone().filter(|login| self.is_for(login)) else {
            return self.kept.end(turn, None).await.map(|()| None);
        };
        self.fill_secret(&mut login);
        let Some(tokens) = &login.tokens else {
            return self.kept.end(turn, Some(&login)).await.map(|()| None);
        };
        // Another process may have renewed it.
        if tokens.are_good() && used != Some(&tokens.access) {
            return self.kept.end(turn, Some(&login)).await.map(|()| Some(login));
        }
        let asked = match &tokens.refresh {
            Some(refresh) => ask(&self.egress, ask_of(&login), Grant::Refresh(refresh)).await,
            None => Err(OAuthError::NeedsLogin),
        };
        match asked {
            Ok(mut fresh) => {
                let Tokens { refresh, scope, .. } = tokens.clone();
                fresh.refresh = fresh.refresh.or(refresh);
                fresh.scope = fresh.scope.or(scope);
                login.tokens = Some(fresh);
                self.keep(turn, &login).await;
                Ok(Some(login))
            }
            Err(error) if error.is_refusal() || matches!(error, OAuthError::NeedsLogin) => {
                tracing::info!(server = %self.server.host_str().unwrap_or_default(), %error, "a login to an MCP server is over");
                login.tokens = None;
                self.keep(turn, &login).await;
                Ok(None)
            }
            Err(error) => {
                self.keep(turn, &login).await;
                Err(error)
            }
        }
    }

    async fn keep(&self, turn: Turn, login: &Login) {
        if let Err(error) = self.kept.end(turn, Some(login)).await {
            tracing::error!(%error, "a renewed login to an MCP server is known to this process only");
        }
    }

    /// Gets a token for the client itself.
    async fn by_itself(&self) -> Result<Login, OAuthError> {
        let found = discover(&self.egress, &self.server, &self.challenge()).await?;
        let Some(id) = &self.configured.client_id else {
            let why = "`oauth.grant` is `client_credentials`, which needs `oauth.client_id`";
            return Err(OAuthError::Configuration(why.to_owned()));
        };
        let client = Client::configured(id, self.configured.client_secret.as_ref(), &found.issuer);
        let scope = self.configured.scope().or(found.scope);
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
        let asked = Ask { scope: scope.as_deref(), ..ask_of(&login) };
        let signed = self.configured.private_key.as_ref().map(|key| {
            let audience = login.issuer.as_deref().unwrap_or_else(|| login.token_endpoint.as_str());
            assertion(key, &login.client.id, audience, now().as_second())
        });
        let tokens = ask(&self.egress, asked, Grant::ClientCredentials(signed.transpose()?)).await?;
        login.tokens = Some(tokens);
        Ok(login)
    }

    /// Tells whether a login is for this address and this client.
    pub(super) fn is_for(&self, login: &Login) -> bool {
        let same_client = match &self.configured.client_id {
            Some(id) => !login.registered && login.client.id == *id,
            None => login.registered,
        };
        login.server == self.server.as_str() && same_client
    }

    pub(super) fn fill_secret(&self, login: &mut Login) {
        if !login.registered {
            login.client.secret.clone_from(&self.configured.client_secret);
        }
    }
}

fn ask_of(login: &Login) -> Ask<'_> {
    Ask { endpoint: &login.token_endpoint, client: &login.client, resource: &login.resource, scope: None }
}
