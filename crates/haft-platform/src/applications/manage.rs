//! Connected applications for people and admins, and the applications that admins create.

use std::collections::HashMap;

use haft_core::application::{ClientRecord, GrantRecord};
use haft_core::id::TokenId;
use haft_core::name::TenantId;
use haft_core::outcome::ErrorCode;
use haft_core::secret::Secret;
use haft_core::token::{Role, TokenRecord};
use haft_oauth::client_metadata::{AuthMethod, ClientMetadata, shown_name};
use haft_oauth::redirect_uri::RedirectUri;

use super::registration::new_record;
use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::rights::{forbidden, named_tenant};

/// The most applications that admins of a tenant may create.
const MAX_CLIENTS: usize = 500;
/// The most redirect URIs of an application.
const MAX_REDIRECT_URIS: usize = 20;

/// A connected application.
#[derive(Debug, Clone)]
pub struct Application {
    pub token: TokenRecord,
    pub grant: GrantRecord,
}

/// An application that an admin creates.
pub struct NewClient {
    pub name: String,
    pub redirect_uris: Vec<String>,
    /// Whether it has a secret.
    pub confidential: bool,
    pub tenant: Option<String>,
}

/// Returns whether a grant belongs to the caller: the same person, or the token with which it was allowed.
pub(super) fn is_own(identity: &Identity, token: &TokenRecord) -> bool {
    if token.tenant != identity.tenant {
        return false;
    }
    match (&identity.actor, token.actor) {
        (Some(own), Some(actor)) => own.id == actor && !own.is_reduced,
        (None, None) => token.parent == identity.token,
        _ => false,
    }
}

/// Returns the connected applications of a tenant for admins, and the own ones for everybody else. `actor` is the id of
/// the person who connected them.
pub async fn list(
    app: &Context,
    identity: &Identity,
    tenant: Option<&str>,
    actor: Option<&str>,
) -> Result<Vec<Application>, ServiceError> {
    let tenant = named_tenant(app, identity, tenant)?;
    let is_admin = identity.role >= Role::Admin;
    let is_listed = |application: &Application| {
        let token = &application.token;
        token.tenant == tenant
            && (is_admin || is_own(identity, token))
            && actor.is_none_or(|actor| match (actor, token.actor) {
                ("me", _) => is_own(identity, token),
                (actor, own) => own.is_some_and(|own| own.to_string() == actor),
            })
    };
    let mut found: Vec<_> = all(app).await?.into_iter().filter(is_listed).collect();
    found.sort_by_key(|application| application.token.id.to_string());
    Ok(found)
}

/// Finds a connected application: an own one, for admins one of the tenant, for platform admins any.
pub async fn find(app: &Context, identity: &Identity, id: &str) -> Result<Application, ServiceError> {
    let not_found = || ServiceError::not_found("application", id);
    let parsed: TokenId = id.parse().map_err(|_| not_found())?;
    let is_visible = |token: &TokenRecord| {
        is_own(identity, token)
            || identity.is_platform_admin()
            || (identity.role >= Role::Admin && token.tenant == identity.tenant)
            // An application sees and ends its own grant.
            || identity.token == Some(token.id)
    };
    let found = all(app).await?.into_iter().find(|application| application.token.id == parsed);
    found.filter(|application| is_visible(&application.token)).ok_or_else(not_found)
}

/// Disconnects an application: its tokens stop working immediately, and its streams end.
pub async fn delete(app: &Context, identity: &Identity, id: &str) -> Result<(), ServiceError> {
    let found = find(app, identity, id).await?;
    app.store().access().delete_token(found.token.id).await?;
    app.reload_access().await?;
    audit::note(identity, "application.disconnect", &found.token.name);
    Ok(())
}

async fn all(app: &Context) -> Result<Vec<Application>, ServiceError> {
    let grants = app.store().access().grants().await?;
    let mut grants: HashMap<TokenId, GrantRecord> =
        grants.into_iter().map(|grant| (grant.id, grant)).collect();
    let tokens = app.store().access().tokens().await?;
    let with_grant = |token: TokenRecord| grants.remove(&token.id).map(|grant| Application { token, grant });
    Ok(tokens.into_iter().filter_map(with_grant).collect())
}

/// Returns the applications that admins of a tenant have created.
pub async fn list_clients(
    app: &Context,
    identity: &Identity,
    tenant: Option<&str>,
) -> Result<Vec<ClientRecord>, ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, tenant)?;
    Ok(app.store().access().clients(&tenant).await?)
}

/// Creates an application; only the result has its secret.
pub async fn create_client(
    app: &Context,
    identity: &Identity,
    new: NewClient,
) -> Result<(ClientRecord, Option<Secret>), ServiceError> {
    identity.require(Role::Admin)?;
    let tenant = named_tenant(app, identity, new.tenant.as_deref())?;
    let name = shown_name(&new.name);
    if new.name.trim().is_empty() || name != new.name.trim() {
        let message = "invalid `name`: expected 1 to 64 characters without control characters";
        return Err(ServiceError::bad_request(message));
    }
    let count = new.redirect_uris.len();
    if !(1..=MAX_REDIRECT_URIS).contains(&count) {
        let message = format!("invalid `redirect_uris`: {count} entries; expected 1 to {MAX_REDIRECT_URIS}");
        return Err(ServiceError::bad_request(message));
    }
    let redirect_uris = new.redirect_uris.iter().map(|uri| RedirectUri::parse(uri));
    let redirect_uris = redirect_uris
        .collect::<Result<_, _>>()
        .map_err(|error| ServiceError::bad_request(format!("invalid `redirect_uris`: {error}")))?;
    if app.store().access().clients(&tenant).await?.len() >= MAX_CLIENTS {
        let message =
            format!("the tenant has {MAX_CLIENTS} applications, which is the limit; delete old ones");
        return Err(ServiceError::new(ErrorCode::Conflict, message));
    }
    let auth_method = if new.confidential { AuthMethod::Basic } else { AuthMethod::None };
    let metadata = ClientMetadata { name, redirect_uris, auth_method, refreshes: true };
    let (record, secret) = new_record(app, &metadata)?;
    let record = ClientRecord { tenant: Some(tenant), ..record };
    app.store().access().insert_client(record.clone()).await?;
    audit::note(identity, "application.create", &record.name);
    Ok((record, secret))
}

/// Deletes an application that an admin created, and disconnects it from everybody.
pub async fn delete_client(
    app: &Context,
    identity: &Identity,
    id: &str,
    tenant: Option<&str>,
) -> Result<(), ServiceError> {
    identity.require(Role::Admin)?;
    let tenant: TenantId = named_tenant(app, identity, tenant)?;
    app.store().access().delete_client(id, &tenant).await?;
    app.reload_access().await?;
    audit::note(identity, "application.delete", id);
    Ok(())
}

/// Rejects an application where only people and their own tokens may act: what it created would outlive its tokens.
pub(crate) fn reject_application(identity: &Identity) -> Result<(), ServiceError> {
    if identity.is_application() {
        return Err(forbidden(
            "an application that a person has connected creates neither tokens nor logins",
        ));
    }
    Ok(())
}
