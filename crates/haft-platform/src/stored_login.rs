//! The login of a person at an issuer, kept so that tools get tokens of that person for other services (RFC 8693). Only for
//! issuers whose configuration enables it; encrypted like accounts, and deleted when the issuer ends the login, or the
//! person is disabled or deleted.

use std::sync::Arc;

use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::secret::{GrantId, RefreshTokens as _, Secret, SecretError, SecretSource, login_owner};
use haft_core::{Timestamp, hash};
use haft_oauth::exchange::{IssuedTokens, Request};
use haft_store::Store;
use serde::{Deserialize, Serialize};

use crate::issuers::{Issuer, IssuerError};

/// The error of a token endpoint for a login that has ended.
const INVALID_GRANT: &str = "invalid_grant";

/// A stored login.
#[derive(Serialize, Deserialize)]
pub(crate) struct StoredLogin {
    /// The issuer identifier; after a change of the configuration the login is void.
    issuer: String,
    client_id: String,
    access: String,
    refresh: Option<String>,
    renew_at: Option<i64>,
    /// The hash of what the issuer calls the session.
    pub(crate) session: String,
}

/// Why a login gives no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LoginTokenError {
    #[error("the issuer `{0}` of the provider is not configured")]
    UnknownIssuer(String),
    #[error(transparent)]
    Issuer(#[from] IssuerError),
    #[error("the stored login cannot be read: {0}")]
    Store(String),
    #[error("the client secret of the issuer cannot be read: {0}")]
    ClientSecret(String),
}

impl From<SecretError> for LoginTokenError {
    fn from(error: SecretError) -> Self {
        Self::Store(error.source.to_string())
    }
}

impl StoredLogin {
    pub(crate) fn new(issuer: &Issuer, tokens: &IssuedTokens, session: String) -> Self {
        let exposed = |secret: &Secret| secret.expose().to_owned();
        Self {
            issuer: issuer.settings.issuer.clone(),
            client_id: issuer.settings.client_id.clone(),
            access: exposed(&tokens.access),
            refresh: tokens.refresh.as_ref().map(exposed),
            renew_at: tokens.renew_at,
            session,
        }
    }

    pub(crate) fn read(stored: Option<Secret>, issuer: &Issuer) -> Option<Self> {
        let login: Self = serde_json::from_str(stored?.expose()).ok()?;
        let is_same = login.issuer == issuer.settings.issuer && login.client_id == issuer.settings.client_id;
        is_same.then_some(login)
    }

    pub(crate) fn to_secret(&self) -> Secret {
        Secret::new(serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns the access token, if it works now; one that cannot be renewed works until its end.
    fn valid(&self, now: Timestamp) -> Option<Secret> {
        let is_valid = self.renew_at.is_none_or(|at| now.as_second() < at);
        is_valid.then(|| Secret::new(self.access.clone()))
    }
}

/// Returns what the login of a person at an issuer is stored under. It is not that of a tenant: a person logs in once.
pub(crate) fn grant(issuer: &Issuer, person: ActorId) -> GrantId {
    let (tenant, id) = (TenantId::default_tenant(), &issuer.settings.id);
    GrantId { tenant, key: format!("login:{id}:{person}"), credential: login_owner(person) }
}

/// Returns a valid access token of the login of a person, with a hash that changes with the login; `None` if the person has
/// to log in again. It is refreshed by one request at a time on all nodes.
pub(crate) async fn login_token(
    store: &Store,
    secrets: &dyn SecretSource,
    (issuer, person): (&Arc<Issuer>, ActorId),
    now: Timestamp,
) -> Result<Option<(Secret, String)>, LoginTokenError> {
    let (grant, vault) = (grant(issuer, person), store.vault());
    let Some(login) = StoredLogin::read(vault.read(&grant).await?, issuer) else { return Ok(None) };
    if let Some(access) = login.valid(now) {
        return Ok(Some((access, version(&login.session))));
    }
    let client_secret = client_secret(secrets, issuer).await?;
    let lock = vault.begin(&grant).await?;
    let Some(login) = StoredLogin::read(lock.token, issuer) else {
        vault.end(&grant, lock.number, None).await?;
        return Ok(None);
    };
    // Another request may have refreshed it.
    if let Some(access) = login.valid(now) {
        vault.end(&grant, lock.number, Some(&login.to_secret())).await?;
        return Ok(Some((access, version(&login.session))));
    }
    let answer = match login.refresh.clone().map(Secret::new) {
        Some(refresh) => issuer.request(&Request::Refresh(&refresh), client_secret.as_ref(), now).await,
        None => Err(IssuerError::Rejected { error: INVALID_GRANT.to_owned(), status: 400 }),
    };
    match answer {
        Ok(mut tokens) => {
            tokens.refresh = tokens.refresh.or_else(|| login.refresh.clone().map(Secret::new));
            let version = version(&login.session);
            let fresh = StoredLogin::new(issuer, &tokens, login.session);
            vault.end(&grant, lock.number, Some(&fresh.to_secret())).await?;
            Ok(Some((tokens.access, version)))
        }
        // Other errors, such as a wrong client secret, say nothing about the login.
        Err(IssuerError::Rejected { error, .. }) if error == INVALID_GRANT => {
            tracing::info!(issuer = issuer.settings.id, %person, error, "the login of a person has ended");
            vault.end(&grant, lock.number, None).await?;
            Ok(None)
        }
        Err(error) => {
            vault.end(&grant, lock.number, Some(&login.to_secret())).await?;
            Err(error.into())
        }
    }
}

fn version(session: &str) -> String {
    hash::of_bytes(session.as_bytes())
}

/// Reads the client secret of an issuer where it is stored.
pub(crate) async fn client_secret(
    secrets: &dyn SecretSource,
    issuer: &Issuer,
) -> Result<Option<Secret>, LoginTokenError> {
    let Some(name) = &issuer.settings.client_secret else { return Ok(None) };
    let found = secrets.secret(&TenantId::default_tenant(), name).await;
    let found = found.map_err(|error| LoginTokenError::ClientSecret(error.to_string()))?;
    found.map(Some).ok_or_else(|| LoginTokenError::ClientSecret("not stored".to_owned()))
}
