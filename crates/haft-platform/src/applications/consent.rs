//! What a person allows an application, and the form with which that happens.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use haft_core::application::AllowedRequest;
use haft_core::outcome::ErrorCode;
use haft_core::principal::AllowList;
use haft_core::secret::Secret;
use haft_core::token::{Role, TokenRecord};
use haft_core::{Timestamp, hash};
use haft_store::StoredCode;

use super::request::AuthorizationRequest;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::random;
use crate::rights::forbidden;

/// How long a code works.
const CODE_LIFETIME: Duration = Duration::from_mins(1);
/// How long the form of the page works.
const FORM_LIFETIME: Duration = Duration::from_mins(30);
const FORM_LABEL: &str = "consent form";
/// The most codes of a person that have not expired.
const MAX_CODES: u32 = 20;
/// The most connected applications of a person.
const MAX_GRANTS: usize = 200;
/// The most connected applications of a tenant.
const MAX_GRANTS_OF_TENANT: usize = 10_000;

/// What a person allows.
#[derive(Debug, Clone)]
pub struct Choice {
    pub role: Role,
    /// The rules of the tools; `None` for all that the person may use.
    pub tools: Option<Vec<String>>,
    /// How long the application stays connected; `None` for no end.
    pub lifetime: Option<Duration>,
}

/// Returns a value that binds the form of the page to a session and a request, so that only the page that showed this
/// request to this person can answer it.
pub fn form_token(app: &Context, session: &str, query: &str) -> String {
    let issued = app.now().as_second().to_be_bytes();
    let mac = app.application_key().sign(FORM_LABEL, &[session.as_bytes(), query.as_bytes(), &issued]);
    URL_SAFE_NO_PAD.encode([issued.as_slice(), mac.as_slice()].concat())
}

/// Returns whether a form comes from the page that showed this request in this session.
pub fn is_form_token(app: &Context, session: &str, query: &str, token: &str) -> bool {
    let Ok(bytes) = URL_SAFE_NO_PAD.decode(token) else { return false };
    let Some((issued, mac)) = bytes.split_first_chunk::<8>() else { return false };
    let Ok(at) = Timestamp::from_second(i64::from_be_bytes(*issued)) else { return false };
    let parts = [session.as_bytes(), query.as_bytes(), issued.as_slice()];
    app.application_key().verify(FORM_LABEL, &parts, mac) && app.now() < at + FORM_LIFETIME
}

/// Allows a request: returns the code with which the application fetches its tokens.
pub async fn allow(
    app: &Arc<Context>,
    identity: &Identity,
    request: &AuthorizationRequest,
    choice: Choice,
) -> Result<Secret, ServiceError> {
    let Some(session) = identity.session() else {
        return Err(forbidden("an application is allowed in a browser, by somebody who is logged in"));
    };
    identity.require(choice.role)?;
    check_count(app, identity).await?;
    let tools = match choice.tools {
        None => None,
        Some(rules) => {
            let chosen = AllowList::new(rules)
                .map_err(|error| ServiceError::bad_request(format!("invalid tools: {error}")))?;
            identity.tools.intersection(&chosen).rules()
        }
    };
    let now = app.now();
    let too_long = |_| ServiceError::bad_request("invalid `expires`: too long");
    let expires_at = choice.lifetime.map(|time| now.checked_add(time).map_err(too_long)).transpose()?;
    let allowed = AllowedRequest {
        client_id: request.client.id.clone(),
        client_name: request.client.name.clone(),
        client_host: request.client.host().map(str::to_owned),
        redirect_uri: request.redirect_uri.as_str().to_owned(),
        challenge: request.challenge.clone(),
        resource: request.resource.clone(),
        role: choice.role,
        tools,
        expires_at,
        approver: session.token_hash.clone(),
    };
    let code = random::secret()?;
    let storing = {
        let (app, code) = (Arc::clone(app), code.clone());
        async move {
            let stored = StoredCode { request: allowed, grant: None, expires_at: now + CODE_LIFETIME };
            let hash = hash::of_bytes(code.expose().as_bytes());
            if app.store().access().insert_code(hash, stored, MAX_CODES).await? {
                return Ok(());
            }
            let message = format!("you have allowed {MAX_CODES} requests within a minute; retry later");
            Err(ServiceError::new(ErrorCode::RateLimited, message))
        }
    };
    Box::pin(audit::run_change(app, identity, ("application.allow", &request.client.name), storing)).await?;
    Ok(code)
}

/// Returns what the person has allowed the application most recently, so that the page proposes the same.
pub async fn earlier_choice(
    app: &Context,
    identity: &Identity,
    client_id: &str,
) -> Result<Option<TokenRecord>, ServiceError> {
    let grants = app.store().access().grants().await?;
    let is_of_client =
        |token: &TokenRecord| grants.iter().any(|grant| grant.id == token.id && grant.client_id == client_id);
    let own = own_grants(app, identity).await?;
    Ok(own.into_iter().filter(is_of_client).max_by_key(|token| token.created_at))
}

/// Returns the grants of the caller.
pub(super) async fn own_grants(app: &Context, identity: &Identity) -> Result<Vec<TokenRecord>, ServiceError> {
    let tokens = app.store().access().tokens().await?;
    let is_own = |token: &TokenRecord| token.is_grant() && super::manage::is_own(identity, token);
    Ok(tokens.into_iter().filter(is_own).collect())
}

pub(super) async fn check_count(app: &Context, identity: &Identity) -> Result<(), ServiceError> {
    let tokens = app.store().access().tokens().await?;
    let now = app.now();
    let counts = |token: &&TokenRecord| {
        token.is_grant() && token.tenant == identity.tenant && token.expires_at.is_none_or(|end| now < end)
    };
    let of_tenant: Vec<_> = tokens.iter().filter(counts).collect();
    let own = of_tenant.iter().filter(|token| super::manage::is_own(identity, token)).count();
    if own >= MAX_GRANTS {
        let message =
            format!("you have connected {MAX_GRANTS} applications, which is the limit; disconnect old ones");
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    if of_tenant.len() >= MAX_GRANTS_OF_TENANT {
        let message = format!(
            "the tenant has {MAX_GRANTS_OF_TENANT} connected applications, which is the limit; an admin can disconnect \
             old ones"
        );
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    Ok(())
}
