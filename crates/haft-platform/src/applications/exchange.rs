//! The exchange of a code for tokens.

use std::sync::Arc;

use haft_core::application::{AllowedRequest, GrantRecord, RefreshState, grant_key};
use haft_core::hash;
use haft_core::id::TokenId;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::secret::Secret;
use haft_core::token::TokenRecord;
use haft_oauth::redirect_uri::RedirectUri;
use haft_oauth::refresh_token::RefreshToken;
use haft_oauth::{pkce, resource};
use haft_store::{CodeExchange, StoredCode};
use uuid::Uuid;

use super::clients::{self, Client, ClientCredentials};
use super::grants::{self, IssuedTokens, TokenError};
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::random;
use crate::tokens;

/// The most grants of one application to one person; a further one ends the one that was used the longest ago.
const MAX_GRANTS_OF_CLIENT: usize = 20;

/// The request of an application for its tokens.
pub struct CodeRequest {
    pub credentials: ClientCredentials,
    pub code: Secret,
    pub redirect_uri: Option<String>,
    pub verifier: Option<String>,
    pub resources: Vec<String>,
    /// The URL of this server.
    pub issuer: String,
}

/// Exchanges a code for tokens, once. A second use ends the grant of the first one: somebody else has the code, too.
pub async fn exchange(app: &Arc<Context>, request: CodeRequest) -> Result<IssuedTokens, TokenError> {
    let code_hash = hash::of_bytes(request.code.expose().as_bytes());
    // Before the application, so that only those who have a code let this server fetch a description.
    let stored = app.store().access().find_code(&code_hash).await?;
    let unknown = TokenError::InvalidGrant("the code is invalid, has expired, or was used already");
    let Some(StoredCode { request: allowed, grant, expires_at }) = stored else { return Err(unknown) };
    let client = clients::authenticate(app, &request.credentials).await?;
    if allowed.client_id != client.id {
        return Err(TokenError::InvalidGrant("the code was issued to another application"));
    }
    if let Some(grant) = grant {
        grants::end(app, grant, "application.code_reused").await?;
        return Err(unknown);
    }
    if app.now() >= expires_at {
        return Err(unknown);
    }
    check(&request, &client, &allowed)?;
    let approver = allowed.approver.clone();
    let Some(token) = grants::find_token(app, &approver).await? else {
        return Err(TokenError::InvalidGrant("the person who allowed the request no longer has access"));
    };
    let identity = Identity::from_token(token);
    let issuing = {
        let (app, identity, name) = (Arc::clone(app), identity.clone(), allowed.client_name.clone());
        async move {
            let issued = issue(&app, &identity, (&code_hash, allowed), &client).await;
            audit::note(&identity, "application.connect", &name);
            issued
        }
    };
    let outcome = |issued: &Result<IssuedTokens, TokenError>| match issued {
        Ok(_) => audit::SUCCESS,
        Err(TokenError::Service(error)) => error.code.as_str(),
        Err(_) => ErrorCode::Conflict.as_str(),
    };
    // To its end, even if the application disconnects: otherwise the code would be used up without a grant.
    let change = ("application.connect", "");
    Box::pin(audit::run_recorded(app, &identity, change, issuing, outcome)).await?
}

/// Checks what the application sends with its code.
fn check(request: &CodeRequest, client: &Client, allowed: &AllowedRequest) -> Result<(), TokenError> {
    let is_same = request.redirect_uri.as_ref().is_none_or(|uri| *uri == allowed.redirect_uri);
    // The application may have changed its redirect URIs since.
    let is_covered = RedirectUri::parse(&allowed.redirect_uri).is_ok_and(|uri| client.covers(&uri));
    if !is_same || !is_covered {
        return Err(TokenError::InvalidGrant("`redirect_uri` is not that of the request"));
    }
    let verifier = request.verifier.as_deref().unwrap_or_default();
    if !pkce::is_verifier_of(&allowed.challenge, verifier) {
        return Err(TokenError::InvalidGrant("`code_verifier` is missing or does not match the challenge"));
    }
    if request.resources.iter().any(|named| !resource::is_of(&request.issuer, named)) {
        return Err(TokenError::InvalidTarget);
    }
    Ok(())
}

/// Stores the grant and issues its first tokens.
async fn issue(
    app: &Arc<Context>,
    identity: &Identity,
    (code_hash, allowed): (&str, AllowedRequest),
    client: &Client,
) -> Result<IssuedTokens, TokenError> {
    let id = TokenId(Uuid::now_v7());
    let refresh = if client.refreshes { Some(RefreshToken::new(id, random::bytes()?)) } else { None };
    let token = match grant_token(app, identity, (id, &allowed), refresh.is_some()).await {
        Err(error) if error.code == ErrorCode::Forbidden => {
            return Err(TokenError::InvalidGrant("the person who allowed the request now has fewer rights"));
        }
        token => token?,
    };
    let redirect_uri = RedirectUri::parse(&allowed.redirect_uri).ok();
    let too_long = |_| ServiceError::bad_request("`oauth.refresh_token_lifetime` is too long");
    let refresh_end = app.now().checked_add(app.settings().oauth.refresh_token_lifetime).map_err(too_long)?;
    let grant = GrantRecord {
        id,
        client_id: allowed.client_id,
        client_host: allowed.client_host,
        destination: redirect_uri.map(|uri| uri.destination()).unwrap_or_default(),
        refresh: refresh.as_ref().map(|refresh| RefreshState {
            hash: refresh.hash(),
            previous_hash: None,
            rotated_at: None,
            expires_at: refresh_end,
        }),
    };
    let client_id = grant.client_id.clone();
    app.store().protect_signing_keys().await?;
    let (role, end) = (token.role, token.expires_at);
    match app.store().access().exchange_code(code_hash, &allowed.approver, token, grant).await? {
        CodeExchange::Stored => {}
        CodeExchange::CodeGone => {
            return Err(TokenError::InvalidGrant("the code has expired, or was used already"));
        }
        CodeExchange::ApproverGone => {
            return Err(TokenError::InvalidGrant("the person who allowed the request no longer has access"));
        }
    }
    end_surplus(app, identity, &client_id).await?;
    // The grant is stored, and its tokens must not be lost because this node cannot load it yet.
    if let Err(error) = app.reload_access().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot load a new grant; retrying later");
    }
    Ok(grants::issue(app, (id, role), end, refresh.as_ref()))
}

/// Makes the token of a grant: never more than the person who allowed it may do.
pub(super) async fn grant_token(
    app: &Context,
    identity: &Identity,
    (id, allowed): (TokenId, &AllowedRequest),
    refreshes: bool,
) -> Result<TokenRecord, ServiceError> {
    let chosen = AllowList::try_from(allowed.tools.clone())
        .map_err(|error| ServiceError::bad_request(format!("invalid tools: {error}")))?;
    // Whoever logs in as a person gives what the person may use, also in the future; a token gives what it has.
    let is_of_person = identity.token.is_none() && identity.actor.is_some();
    let tools = if is_of_person { chosen } else { identity.tools.intersection(&chosen) };
    let now = app.now();
    // Without a refresh token, the grant ends with its only access token.
    let only = now.checked_add(app.settings().oauth.access_token_lifetime).ok().filter(|_| !refreshes);
    let own_end = tokens::own_expiry(app, identity).await?;
    Ok(TokenRecord {
        id,
        tenant: identity.tenant.clone(),
        name: allowed.client_name.clone(),
        hash: grant_key(id),
        role: allowed.role.min(identity.role),
        elevated: false,
        platform: false,
        tools,
        rate_limit: identity.rate_limit,
        created_at: now,
        expires_at: allowed.expires_at.into_iter().chain(own_end).chain(only).min(),
        last_used_at: None,
        previous: None,
        parent: identity.token,
        actor: identity.actor.as_ref().map(|actor| actor.id),
    })
}

/// Ends the grants of an application that were used the longest ago, if it has too many of one person.
pub(super) async fn end_surplus(
    app: &Arc<Context>,
    identity: &Identity,
    client_id: &str,
) -> Result<(), ServiceError> {
    let mut own = super::consent::own_grants(app, identity).await?;
    let grants = app.store().access().grants().await?;
    own.retain(|token| grants.iter().any(|grant| grant.id == token.id && grant.client_id == client_id));
    own.sort_by_key(|token| std::cmp::Reverse(token.last_used_at.unwrap_or(token.created_at)));
    for token in own.iter().skip(MAX_GRANTS_OF_CLIENT) {
        app.store().access().delete_token(token.id).await?;
    }
    Ok(())
}
