//! Refreshing the tokens of a grant. Each use replaces the refresh token; a second use of an old one ends the grant,
//! because one of the two who use it has stolen it. An honest client that sends the same one twice at the same moment, or
//! lost the answer, gets the same successor, on whatever node.

use std::sync::Arc;
use std::time::Duration;

use haft_core::application::{GrantRecord, RefreshState, grant_key};
use haft_core::secret::Secret;
use haft_oauth::refresh_token::RefreshToken;
use haft_oauth::{resource, scope};

use super::clients::{self, ClientCredentials};
use super::grants::{self, IssuedTokens, TokenError};
use crate::context::Context;
use crate::error::ServiceError;

/// How long a refresh token that was replaced gives its successor again.
const GRACE: Duration = Duration::from_secs(30);

/// The request of an application for new tokens.
pub struct RefreshRequest {
    pub credentials: ClientCredentials,
    pub token: Secret,
    pub scope: Option<String>,
    pub resources: Vec<String>,
    /// The URL of this server.
    pub issuer: String,
}

/// What a refresh token is.
enum Use {
    /// It is in use.
    Current,
    /// It was replaced a moment ago.
    JustReplaced,
    /// It has expired.
    Expired,
    /// It was replaced before that.
    Reused,
}

/// Issues new tokens for a refresh token.
pub async fn refresh(app: &Arc<Context>, request: RefreshRequest) -> Result<IssuedTokens, TokenError> {
    let unknown = TokenError::InvalidGrant("the refresh token is invalid, has expired, or was revoked");
    let Some(sent) = RefreshToken::read(request.token.expose(), app.application_key()) else {
        return Err(unknown);
    };
    let Some(grant) = app.store().access().find_grant(sent.grant).await? else { return Err(unknown) };
    clients::authenticate_owner(app, &request.credentials, &grant.client_id).await?;
    if request.resources.iter().any(|named| !resource::is_of(&request.issuer, named)) {
        return Err(TokenError::InvalidTarget);
    }
    let Some(token) = grants::find_token(app, &grant_key(grant.id)).await? else { return Err(unknown) };
    let stored = app.store().access().token(grant.id).await?;
    // What the person allowed; what the person may do now can be less.
    let role = stored.map_or(token.principal.role, |token| token.role);
    if scope::requested_role(request.scope.as_deref()).is_some_and(|requested| requested > role) {
        return Err(TokenError::InvalidScope);
    }
    if !replace(app, &sent, grant).await? {
        return Err(unknown);
    }
    let successor = sent.successor(app.application_key());
    Ok(grants::issue(app, (sent.grant, role), token.expires_at, Some(&successor)))
}

/// Replaces a refresh token by its successor; returns whether the application gets it.
async fn replace(app: &Arc<Context>, sent: &RefreshToken, grant: GrantRecord) -> Result<bool, TokenError> {
    let successor = sent.successor(app.application_key()).hash();
    let own = sent.hash();
    let (id, mut state) = (grant.id, grant.refresh);
    // Twice, because another node may replace it at the same moment.
    for _ in 0..2 {
        let Some(current) = &state else { return Ok(false) };
        match what_is(app, current, &own, &successor) {
            Use::JustReplaced => return Ok(true),
            Use::Expired => return Ok(false),
            Use::Reused => {
                grants::end(app, id, "application.refresh_token_reused").await?;
                return Ok(false);
            }
            Use::Current => {}
        }
        let too_long = |_| ServiceError::bad_request("`oauth.refresh_token_lifetime` is too long");
        let end = app.now().checked_add(app.settings().oauth.refresh_token_lifetime).map_err(too_long)?;
        if app.store().access().rotate_refresh_token(id, (&own, &successor), end).await? {
            return Ok(true);
        }
        state = app.store().access().find_grant(id).await?.and_then(|grant| grant.refresh);
    }
    Ok(false)
}

fn what_is(app: &Context, state: &RefreshState, own: &str, successor: &str) -> Use {
    let now = app.now();
    if state.hash == own {
        return if now < state.expires_at { Use::Current } else { Use::Expired };
    }
    let was_replaced = state.previous_hash.as_deref() == Some(own) && state.hash == successor;
    let is_recent = state.rotated_at.is_some_and(|at| now < at + GRACE);
    if was_replaced && is_recent { Use::JustReplaced } else { Use::Reused }
}
