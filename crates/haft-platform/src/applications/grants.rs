//! Grants and their tokens: issuing, finding, ending and describing them.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::application::{GrantRecord, grant_key};
use haft_core::catalog::StoreError;
use haft_core::id::TokenId;
use haft_core::secret::Secret;
use haft_core::token::Role;
use haft_oauth::access_token::AccessToken;
use haft_oauth::refresh_token::RefreshToken;
use haft_oauth::scope;

use super::clients::{self, Client, ClientCredentials, ClientError};
use crate::access::Token;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// How old a valid access token may be that this node does not know: another node has just issued it.
const NEW_TOKEN_SECONDS: i64 = 30;

/// The tokens that an application gets.
pub struct IssuedTokens {
    pub access: Secret,
    /// How long it works.
    pub seconds: i64,
    pub refresh: Option<Secret>,
    pub scope: String,
}

/// An application gets no tokens.
#[derive(Debug)]
pub enum TokenError {
    /// The code or the refresh token is invalid, expired, or belongs to another application.
    InvalidGrant(&'static str),
    /// The application is unknown or does not authenticate.
    InvalidClient(ClientError),
    /// The resource is not this server.
    InvalidTarget,
    /// The scope is more than what was allowed.
    InvalidScope,
    /// The configuration does not enable the grant.
    UnsupportedGrant,
    /// The application may not use the grant.
    UnauthorizedClient,
    /// An error of this server.
    Service(ServiceError),
}

impl From<ServiceError> for TokenError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl From<StoreError> for TokenError {
    fn from(error: StoreError) -> Self {
        Self::Service(error.into())
    }
}

impl From<ClientError> for TokenError {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Store(error) => error.into(),
            error => Self::InvalidClient(error),
        }
    }
}

/// Issues an access token of a grant, with its refresh token.
pub(super) fn issue(
    app: &Context,
    (grant, role): (TokenId, Role),
    end: Option<Timestamp>,
    refresh: Option<&RefreshToken>,
) -> IssuedTokens {
    let now = app.now();
    let lifetime = app.settings().oauth.access_token_lifetime;
    let expires_at = end.into_iter().chain(now.checked_add(lifetime).ok()).min().unwrap_or(now);
    let token = AccessToken { grant, issued_at: now, expires_at };
    let key = app.application_key();
    IssuedTokens {
        access: Secret::new(token.sign(key)),
        seconds: expires_at.as_second() - now.as_second(),
        refresh: refresh.map(|refresh| refresh.value(key)),
        scope: scope::granted(role, refresh.is_some()),
    }
}

/// Finds the token of a grant, also if another node has just stored it.
pub(super) async fn find_token(app: &Context, hash: &str) -> Result<Option<Arc<Token>>, StoreError> {
    if let Some(token) = app.access().token_by_hash(hash, app.now()) {
        return Ok(Some(token));
    }
    app.reload_access().await?;
    Ok(app.access().token_by_hash(hash, app.now()))
}

/// Finds what a valid access token gives access to, until it expires.
pub async fn find_access_token(app: &Context, value: &str) -> Result<Option<Arc<Token>>, ServiceError> {
    let now = app.now();
    let Some(claims) = AccessToken::verify(value, app.application_key(), now) else { return Ok(None) };
    let key = grant_key(claims.grant);
    let is_new = now.as_second() - claims.issued_at.as_second() < NEW_TOKEN_SECONDS;
    let token = match app.access().token_by_hash(&key, now) {
        None if is_new => find_token(app, &key).await?,
        found => found,
    };
    Ok(token.map(|token| Arc::new(token.until(claims.expires_at))))
}

/// Ends a grant: all of its tokens stop working, on every node within a second.
pub(super) async fn end(app: &Arc<Context>, id: TokenId, action: &str) -> Result<(), ServiceError> {
    let Some(token) = find_token(app, &grant_key(id)).await? else {
        // Nobody can use it, but it may still be stored, for example if its person is disabled.
        return match app.store().access().delete_token(id).await {
            Ok(()) | Err(StoreError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        };
    };
    let identity = Identity::from_token(token);
    let name = app.store().access().token(id).await?;
    let name = name.map_or_else(|| id.to_string(), |token| token.name);
    let ending = {
        let app = Arc::clone(app);
        async move {
            app.store().access().delete_token(id).await?;
            Ok(app.reload_access().await?)
        }
    };
    audit::run_change(app, &identity, (action, &name), ending).await
}

/// Returns the grant that a token was issued for by this installation, even if the token has expired.
fn grant_of(app: &Context, value: &str) -> Option<TokenId> {
    let key = app.application_key();
    let access = AccessToken::read(value, key).map(|token| token.grant);
    access.or_else(|| RefreshToken::read(value, key).map(|token| token.grant))
}

/// Ends the grant of an access or refresh token (RFC 7009). Unknown tokens are no error.
pub async fn revoke(
    app: &Arc<Context>,
    credentials: &ClientCredentials,
    value: &str,
) -> Result<(), TokenError> {
    let Some(grant) = grant_of(app, value) else { return Ok(()) };
    let Some(record) = app.store().access().find_grant(grant).await? else { return Ok(()) };
    clients::authenticate_owner(app, credentials, &record.client_id).await?;
    Ok(end(app, grant, "application.revoke").await?)
}

/// What a valid token gives.
pub struct Introspected {
    pub record: GrantRecord,
    pub token: Arc<Token>,
    pub issued_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
}

/// Describes a token to the application that it was issued to (RFC 7662); `None` for one that gives no access or belongs
/// to another application.
pub async fn introspect(
    app: &Arc<Context>,
    client: &Client,
    value: &str,
) -> Result<Option<Introspected>, ServiceError> {
    let Some(grant) = grant_of(app, value) else { return Ok(None) };
    let Some(record) = app.store().access().find_grant(grant).await? else { return Ok(None) };
    let Some(token) = find_token(app, &grant_key(grant)).await? else { return Ok(None) };
    if record.client_id != client.id {
        return Ok(None);
    }
    let now = app.now();
    let key = app.application_key();
    if let Some(claims) = AccessToken::verify(value, key, now) {
        let (issued_at, expires_at) = (Some(claims.issued_at), Some(claims.expires_at));
        return Ok(Some(Introspected { record, token, issued_at, expires_at }));
    }
    let own = RefreshToken::read(value, key);
    let state = record
        .refresh
        .clone()
        .filter(|state| now < state.expires_at && own.as_ref().is_some_and(|own| own.hash() == state.hash));
    let expires_at = state.map(|state| state.expires_at);
    Ok(expires_at.map(|end| Introspected { record, token, issued_at: None, expires_at: Some(end) }))
}
