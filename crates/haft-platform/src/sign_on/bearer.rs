//! JSON Web Tokens of configured issuers as bearer tokens.

use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::actor::login_key;
use haft_core::hash;
use haft_core::id::ActorId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_oauth::jwt::{self, Claims, Purpose};

use super::error::SignOnError;
use super::person::{choose_tenant, person_of_claims};
use crate::access::Token;
use crate::context::Context;
use crate::error::ServiceError;
use crate::issuers::{Issuer, VerifyError};

/// The claim that names the tenant of a person with several.
pub(crate) const TENANT_CLAIM: &str = "haft_tenant";

/// Finds the login of the person that a token of an issuer names; `None` if it gives no access. An error is one of this
/// server or of the issuer.
pub async fn find_token(app: &Arc<Context>, value: &str) -> Result<Option<Arc<Token>>, ServiceError> {
    let (hash, now) = (hash::of_bytes(value.as_bytes()), app.now());
    if let Some(verified) = app.issuers().verified.get(&hash, now) {
        let Some(key) = verified.login_key else { return Ok(None) };
        if let Some(token) = app.access().login_until(&key, verified.end, now) {
            return Ok(Some(token));
        }
        // The person may have lost the tenant since.
    }
    let Some(issuer) = app.issuers().of_token(value) else { return Ok(None) };
    if issuer.settings.audiences.is_empty() {
        return Ok(None);
    }
    let purpose = Purpose::Bearer(&issuer.settings.audiences);
    let claims = match issuer.verify(value, purpose, now).await {
        Ok(claims) => claims,
        Err(VerifyError::Issuer(error)) => {
            tracing::warn!(issuer = issuer.settings.id, %error, "a bearer token cannot be verified");
            let message =
                format!("the issuer `{}` of the token does not answer; retry later", issuer.settings.name);
            return Err(ServiceError::new(ErrorCode::Overloaded, message));
        }
        Err(error) => {
            tracing::info!(issuer = issuer.settings.id, %error, "a bearer token was rejected");
            return Ok(None);
        }
    };
    let end = end(&claims).unwrap_or(now);
    let key = login(app, issuer, &claims).await?;
    app.issuers().verified.insert(hash, key.clone(), end, now);
    Ok(key.and_then(|key| app.access().login_until(&key, end, now)))
}

/// Returns the key of the login of a person; `None` if there is no access.
async fn login(
    app: &Arc<Context>,
    issuer: &Arc<Issuer>,
    claims: &Claims,
) -> Result<Option<String>, ServiceError> {
    let named: Option<TenantId> = match claims.get(TENANT_CLAIM) {
        None => None,
        // A name that is not valid is that of no tenant.
        Some(tenant) => match tenant.as_str().and_then(|tenant| tenant.parse().ok()) {
            Some(tenant) => Some(tenant),
            None => return Ok(None),
        },
    };
    let found = async {
        let person = person_of_token(app, issuer, claims).await?;
        let tenant = choose_tenant(app, person, named.as_ref())?;
        Ok(login_key(person, &tenant))
    };
    match found.await {
        Ok(key) => Ok(Some(key)),
        Err(SignOnError::Service(error)) => Err(error),
        Err(error) => {
            tracing::info!(issuer = issuer.settings.id, %error, "a bearer token gives no access");
            Ok(None)
        }
    }
}

/// Returns the person of a token. The rules are applied to somebody who never logged in only: the claims of an access token
/// are often fewer than those of a login, and must not take away what a login gave.
pub async fn person_of_token(
    app: &Arc<Context>,
    issuer: &Arc<Issuer>,
    claims: &Claims,
) -> Result<ActorId, SignOnError> {
    let subject = claims.get("sub").and_then(|subject| subject.as_str()).unwrap_or_default();
    let known = app.store().access().find_identity(&issuer.settings.issuer, subject).await?;
    let Some(id) = known else { return person_of_claims(app, issuer, claims).await };
    if !app.access().tenants_of_person(id).is_empty() {
        return Ok(id);
    }
    // Another node may have just created the person.
    app.reload_access().await?;
    Ok(id)
}

/// Returns when a token expires.
fn end(claims: &Claims) -> Option<Timestamp> {
    Timestamp::from_second(jwt::time(claims, "exp").ok()??).ok()
}
