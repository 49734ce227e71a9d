//! A login as it is kept: sealed, and used by one process at a time.

use std::sync::Arc;

use haft_core::mcp::McpServer;
use haft_core::secret::{GrantId, RefreshTokens, Secret, SecretError};
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::{Client, Proof};
use super::error::OAuthError;
use super::token::Tokens;

/// Everything that a login left behind.
#[derive(Clone)]
pub(super) struct Login {
    /// The address that it was for: with another one, it is worth nothing.
    pub(super) server: String,
    pub(super) resource: String,
    pub(super) issuer: Option<String>,
    pub(super) token_endpoint: Url,
    pub(super) client: Client,
    /// Whether haft registered the client; else its secret is the configuration's.
    pub(super) registered: bool,
    /// The address that the client gets its answers at.
    pub(super) redirect: String,
    /// Nothing once they were refused: then only the client is left.
    pub(super) tokens: Option<Tokens>,
}

/// The form that is sealed.
#[derive(Serialize, Deserialize)]
struct Sealed {
    server: String,
    resource: String,
    issuer: Option<String>,
    token_endpoint: String,
    client_id: String,
    client_secret: Option<String>,
    proof: Proof,
    registered: bool,
    redirect: String,
    access: Option<String>,
    refresh: Option<String>,
    renew_at: Option<i64>,
    scope: Option<String>,
}

impl Login {
    fn seal(&self) -> Secret {
        let tokens = self.tokens.as_ref();
        let secret = self.client.secret.as_ref().filter(|_| self.registered);
        let open = |secret: &Secret| secret.expose().to_owned();
        let sealed = Sealed {
            server: self.server.clone(),
            resource: self.resource.clone(),
            issuer: self.issuer.clone(),
            token_endpoint: self.token_endpoint.to_string(),
            client_id: self.client.id.clone(),
            client_secret: secret.map(open),
            proof: self.client.proof,
            registered: self.registered,
            redirect: self.redirect.clone(),
            access: tokens.map(|tokens| open(&tokens.access)),
            refresh: tokens.and_then(|tokens| tokens.refresh.as_ref()).map(open),
            renew_at: tokens.and_then(|tokens| tokens.renew_at),
            scope: tokens.and_then(|tokens| tokens.scope.clone()),
        };
        Secret::new(serde_json::to_string(&sealed).unwrap_or_default())
    }

    fn open(text: &Secret) -> Option<Self> {
        let sealed: Sealed = serde_json::from_str(text.expose()).ok()?;
        let tokens = sealed.access.map(|access| Tokens {
            access: Secret::new(access),
            refresh: sealed.refresh.map(Secret::new),
            renew_at: sealed.renew_at,
            scope: sealed.scope,
        });
        let secret = sealed.client_secret.map(Secret::new);
        Some(Self {
            server: sealed.server,
            resource: sealed.resource,
            issuer: sealed.issuer,
            token_endpoint: Url::parse(&sealed.token_endpoint).ok()?,
            client: Client { id: sealed.client_id, secret, proof: sealed.proof },
            registered: sealed.registered,
            redirect: sealed.redirect,
            tokens,
        })
    }
}

/// Where the login of one server is kept.
#[derive(Clone)]
pub(in crate::client) struct Kept {
    place: Option<Arc<dyn RefreshTokens>>,
    grant: GrantId,
}

/// The turn of this process to change a login.
pub(super) struct Turn {
    pub(super) login: Option<Login>,
    number: i64,
}

impl Kept {
    pub(in crate::client) fn new(server: &McpServer, place: Option<Arc<dyn RefreshTokens>>) -> Self {
        // No credential has such a name; the store forgets by it what belongs to a server that is deleted.
        let key = haft_core::mcp::login_key(&server.id);
        Self { place, grant: GrantId { tenant: server.tenant.clone(), credential: key.clone(), key } }
    }

    pub(super) async fn read(&self) -> Result<Option<Login>, OAuthError> {
        let Some(place) = &self.place else { return Ok(None) };
        let found = place.read(&self.grant).await.map_err(fault)?;
        Ok(found.as_ref().and_then(Login::open))
    }

    pub(super) async fn begin(&self) -> Result<Turn, OAuthError> {
        let Some(place) = &self.place else { return Ok(Turn { login: None, number: 0 }) };
        let turn = place.begin(&self.grant).await.map_err(fault)?;
        Ok(Turn { login: turn.token.as_ref().and_then(Login::open), number: turn.number })
    }

    pub(super) async fn end(&self, turn: Turn, login: Option<&Login>) -> Result<(), OAuthError> {
        let Some(place) = &self.place else { return Ok(()) };
        let sealed = login.map(Login::seal);
        place.end(&self.grant, turn.number, sealed.as_ref()).await.map_err(fault)
    }

    /// Forgets the login; tells whether there was one.
    pub(in crate::client) async fn forget(&self) -> Result<bool, OAuthError> {
        let turn = self.begin().await?;
        let was = turn.login.as_ref().is_some_and(|login| login.tokens.is_some());
        self.end(turn, None).await?;
        Ok(was)
    }
}

fn fault(SecretError { source, .. }: SecretError) -> OAuthError {
    OAuthError::Store(source.to_string())
}
