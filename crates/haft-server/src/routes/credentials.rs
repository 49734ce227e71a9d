//! `/credentials`: stored secrets. Values are never returned.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::credential::{CredentialBody, CredentialList, CredentialView};
use haft_core::secret::MASK;
use haft_core::token::Role;
use haft_store::{CredentialInfo, CredentialPurpose};

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use haft_platform::Installation;
use haft_platform::credential_references::CredentialReferences;
use haft_platform::credentials::{self, CredentialFields, UsedCredential};
use haft_platform::identity::Identity;

fn view_of(info: CredentialInfo, used_by: Vec<String>) -> CredentialView {
    let CredentialPurpose { category, provider_key, provider_variant, description } = info.purpose;
    CredentialView {
        used_by,
        name: info.name,
        category,
        provider_key,
        provider_variant,
        description,
        value: Cow::Borrowed(MASK),
        payload: info
            .fields
            .map(|fields| fields.into_iter().map(|field| (field, Cow::Borrowed(MASK))).collect()),
        error: info.error,
        created_at: info.created_at,
        modified_at: info.modified_at,
    }
}

/// List stored credentials, without their values.
#[utoipa::path(
    get, path = "/credentials", tag = "credentials",
    params(("category" = Option<String>, Query, description = "Only credentials of this category"),
        ("provider_key" = Option<String>, Query, description = "Only credentials for this provider"), PageParams),
    responses((status = 200, body = Success<CredentialList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let page = params.page("credentials")?;
    let (category, provider) = (params.get("category"), params.get("provider_key"));
    let mut all = app.store().vault().list(&identity.tenant).await?;
    all.retain(|info| {
        category.is_none_or(|category| info.purpose.category == category)
            && (provider.is_none() || info.purpose.provider_key.as_deref() == provider)
    });
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |credential| credential.name.clone());
    let references = CredentialReferences::collect(&app, &identity.tenant).await?;
    let credentials = selected
        .into_iter()
        .map(|info| {
            let used_by = references.of(&info.name);
            view_of(info, used_by)
        })
        .collect();
    Ok(success(CredentialList { credentials, total, next_page_token }).into_response())
}

/// Return a stored credential, without its value.
#[utoipa::path(
    get, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path, example = "API_TOKEN")),
    responses((status = 200, body = Success<CredentialView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    Ok(success(view(&app, &identity, &name).await?).into_response())
}

async fn view(app: &Installation, identity: &Identity, name: &str) -> Result<CredentialView, ApiError> {
    let UsedCredential { info, used_by } = credentials::used(app, identity, name).await?;
    Ok(view_of(info, used_by))
}

/// Store or replace a credential.
#[utoipa::path(
    put, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path, example = "API_TOKEN")), request_body = CredentialBody,
    responses((status = 200, body = Success<CredentialView>))
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    // The parser's message could quote the value.
    let body: CredentialBody = body.json().map_err(|_| {
        ApiError::bad_request(
            "invalid request body: expected `{\"value\": \"…\"}` with the secret as a string, or `{\"payload\": {…}}` \
             with strings; optional: `category`, `provider_key`, `provider_variant`, `description`",
        )
    })?;
    let CredentialBody { value, payload, category, provider_key, provider_variant, description } = body;
    let fields = CredentialFields { value, payload, category, provider_key, provider_variant, description };
    credentials::put(&app, &identity, &name, fields).await?;
    Ok(success(view(&app, &identity, &name).await?).into_response())
}

/// Delete a credential. One that tools refer to is deleted only with `force=true`.
#[utoipa::path(
    delete, path = "/credentials/{name}", tag = "credentials",
    params(("name" = String, Path, example = "API_TOKEN"),
        ("force" = Option<bool>, Query, description = "Delete it even if tools refer to it")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody, description = "Tools refer to it; `details.used_by` has their names"))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(name): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    let force = params.flag("force")?;
    credentials::delete(&app, &identity, &name, force).await?;
    Ok(reply::message(format!("Credential '{name}' deleted")))
}
