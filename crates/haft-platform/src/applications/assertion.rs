//! The exchange of an identity assertion for an access token (JWT-bearer grant, ID-JAG): the issuer of a company decides
//! which application may act for which person here, and nobody has to click through a page.

use std::sync::Arc;

use haft_core::actor::login_key;
use haft_core::application::{AllowedRequest, GrantRecord};
use haft_core::hash;
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::secret::Secret;
use haft_core::{Timestamp, token::Role};
use haft_oauth::id_jag::{self, IdentityAssertion};
use haft_oauth::{resource, scope};
use haft_store::UsedAssertion;
use uuid::Uuid;

use super::clients::{self, Client, ClientCredentials, Origin};
use super::exchange::{end_surplus, grant_token};
use super::grants::{self, IssuedTokens, TokenError};
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::issuers::{Issuer, VerifyError};
use crate::sign_on::{self, SignOnError};

/// How long a used assertion is kept beyond its end, since clocks differ.
const KEPT_SECONDS: i64 = 120;
const INVALID: TokenError =
    TokenError::InvalidGrant("the assertion is invalid, has expired, or was used already");
const NO_ACCESS: TokenError =
    TokenError::InvalidGrant("the person of the assertion has no access to this server");

/// The request of an application that has an assertion.
pub struct AssertionRequest {
    pub credentials: ClientCredentials,
    pub assertion: Secret,
    pub scope: Option<String>,
    pub resources: Vec<String>,
}

/// Returns the URL of this server that assertions have to name, if any issuer may issue some. It must be configured: the
/// one of a request is chosen by whoever sends it, so an assertion for another server would be accepted.
pub fn assertion_audience(app: &Context) -> Option<&str> {
    let is_enabled = app.issuers().all().iter().any(|issuer| !issuer.settings.assertion_clients.is_empty());
    let url = app.settings().mcp.public_url.as_deref().filter(|_| is_enabled)?;
    Some(url.trim_end_matches('/'))
}

/// Issues an access token for an assertion, once. There is no refresh token: the issuer decides each time.
pub async fn exchange_assertion(
    app: &Arc<Context>,
    request: AssertionRequest,
) -> Result<IssuedTokens, TokenError> {
    let audience = assertion_audience(app).ok_or(TokenError::UnsupportedGrant)?.to_owned();
    let client = clients::authenticate_confidential(app, &request.credentials).await?;
    let (issuer, assertion, claims) = verify(app, &request, &client, &audience).await?;
    let role = role(&assertion, request.scope.as_deref())?;
    let mut resources = assertion.resources.iter().chain(&request.resources);
    if resources.any(|named| !resource::is_of(&audience, named)) {
        return Err(TokenError::InvalidTarget);
    }
    let identity = person(app, &issuer, &claims, &client).await?;
    let issuing = {
        let (app, identity) = (Arc::clone(app), identity.clone());
        async move {
            let name = client.name.clone();
            let issued = issue(&app, &identity, (&issuer, &assertion), (client, role)).await;
            audit::note(&identity, "application.connect", &name);
            issued
        }
    };
    let outcome = |issued: &Result<IssuedTokens, TokenError>| match issued {
        Ok(_) => audit::SUCCESS,
        Err(TokenError::Service(error)) => error.code.as_str(),
        Err(_) => ErrorCode::Conflict.as_str(),
    };
    let change = ("application.connect", "");
    Box::pin(audit::run_recorded(app, &identity, change, issuing, outcome)).await?
}

/// Verifies an assertion. The log has the reason of a rejection; whoever sends assertions learns little.
async fn verify(
    app: &Context,
    request: &AssertionRequest,
    client: &Client,
    audience: &str,
) -> Result<(Arc<Issuer>, IdentityAssertion, haft_oauth::jwt::Claims), TokenError> {
    let rejected = |error: &dyn std::fmt::Display| {
        tracing::info!(client = client.id, %error, "an identity assertion was rejected");
        INVALID
    };
    let (value, now) = (request.assertion.expose(), app.now());
    let audiences = [audience.to_owned()];
    let verified = app.issuers().verify_typed(value, id_jag::TYPE, &audiences, now).await;
    let (issuer, claims) = verified.map_err(|error| match error {
        VerifyError::Issuer(error) => {
            tracing::warn!(client = client.id, %error, "an identity assertion cannot be verified");
            let message = "the issuer of the assertion does not answer; retry later";
            TokenError::Service(ServiceError::new(ErrorCode::Overloaded, message))
        }
        error => rejected(&error),
    })?;
    if !issuer.settings.assertion_clients.contains(&client.id) {
        return Err(TokenError::UnauthorizedClient);
    }
    let read = IdentityAssertion::read(&claims, audience, &client.id, now.as_second());
    let assertion = read.map_err(|error| rejected(&error))?;
    Ok((issuer, assertion, claims))
}

/// Returns the role: that of the assertion, or less if the request asks for less.
fn role(assertion: &IdentityAssertion, requested: Option<&str>) -> Result<Role, TokenError> {
    let allowed = match &assertion.scope {
        None => scope::DEFAULT,
        // An assertion with other scopes gives no access here.
        Some(text) => scope::requested_role(Some(text)).ok_or(TokenError::InvalidScope)?,
    };
    match scope::requested_role(requested) {
        Some(requested) if requested > allowed => Err(TokenError::InvalidScope),
        Some(requested) => Ok(requested),
        None => Ok(allowed),
    }
}

/// Finds or creates the person of an assertion, as for a bearer token of the issuer; returns the login of the person.
async fn person(
    app: &Arc<Context>,
    issuer: &Arc<Issuer>,
    claims: &haft_oauth::jwt::Claims,
    client: &Client,
) -> Result<Identity, TokenError> {
    let named = match &client.origin {
        // An application of a tenant is connected there only.
        Origin::Created(tenant) => Some(tenant.clone()),
        Origin::Document(_) | Origin::Registered => named_tenant(claims)?,
    };
    let found = async {
        let person = sign_on::person_of_token(app, issuer, claims).await?;
        let tenant = sign_on::choose_tenant(app, person, named.as_ref())?;
        Ok::<_, SignOnError>(login_key(person, &tenant))
    };
    let key = found.await.map_err(|error| match error {
        SignOnError::Service(error) => TokenError::Service(error),
        error => {
            tracing::info!(issuer = issuer.settings.id, %error, "an identity assertion gives no access");
            NO_ACCESS
        }
    })?;
    let login = app.access().token_by_hash(&key, app.now()).ok_or(NO_ACCESS)?;
    Ok(Identity::from_token(login))
}

fn named_tenant(claims: &haft_oauth::jwt::Claims) -> Result<Option<TenantId>, TokenError> {
    let Some(named) = claims.get(sign_on::TENANT_CLAIM) else { return Ok(None) };
    // A name that is not valid is that of no tenant.
    named.as_str().and_then(|tenant| tenant.parse().ok()).map(Some).ok_or(NO_ACCESS)
}

/// Stores the grant, uses the assertion up, and issues the token.
async fn issue(
    app: &Arc<Context>,
    identity: &Identity,
    (issuer, assertion): (&Issuer, &IdentityAssertion),
    (client, role): (Client, Role),
) -> Result<IssuedTokens, TokenError> {
    super::consent::check_count(app, identity).await?;
    let id = TokenId(Uuid::now_v7());
    let allowed = AllowedRequest {
        client_id: client.id.clone(),
        client_name: client.name,
        client_host: None,
        redirect_uri: String::new(),
        challenge: String::new(),
        resource: None,
        role,
        tools: None,
        expires_at: None,
        approver: String::new(),
    };
    let token = grant_token(app, identity, (id, &allowed), false).await?;
    let grant = GrantRecord {
        id,
        client_id: client.id.clone(),
        client_host: None,
        destination: format!("nowhere: `{}` vouches for it", issuer.settings.name),
        refresh: None,
    };
    let (role, end) = (token.role, token.expires_at);
    app.store().protect_signing_keys().await?;
    let used = UsedAssertion {
        hash: hash::of_bytes(format!("{}\n{}", issuer.settings.issuer, assertion.id).as_bytes()),
        expires_at: Timestamp::from_second(assertion.expires_at.saturating_add(KEPT_SECONDS))
            .map_err(|_| INVALID)?,
    };
    if !app.store().access().exchange_assertion(used, token, grant).await? {
        tracing::info!(client = client.id, "an identity assertion was used a second time");
        return Err(INVALID);
    }
    end_surplus(app, identity, &client.id).await?;
    // The grant is stored, and its token must not be lost because this node cannot load it yet.
    if let Err(error) = app.reload_access().await {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot load a new grant; retrying later");
    }
    Ok(grants::issue(app, (id, role), end, None))
}
