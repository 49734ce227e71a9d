//! `/credentials`: stored secrets. Values are never returned.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::Timestamp;
use haft_core::secret::{MASK, Secret};
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};

/// A stored credential, without its value.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CredentialView {
    #[schema(example = "API_TOKEN")]
    name: String,
    /// Always `***`.
    #[schema(example = "***")]
    value: &'static str,
    /// Why it cannot be decrypted.
    #[schema(required)]
    error: Option<String>,
    created_at: Timestamp,
    modified_at: Timestamp,
}

/// A page of credentials.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CredentialList {
    credentials: Vec<CredentialView>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A credential that was stored.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StoredCredential {
    #[schema(example = "API_TOKEN")]
    name: String,
    /// Always `***`.
    #[schema(example = "***")]
    value: &'static str,
}

/// List stored credentials, without their values.
#[utoipa::path(get, path = "/credentials", tag = "credentials", params(PageParams), responses((status = 200, body = Success<CredentialList>)))]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let page = params.page("credentials")?;
    let all = app.store().credentials(&identity.tenant).await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |credential| credential.name.clone());
    let credentials = selected
        .into_iter()
        .map(|c| CredentialView {
            name: c.name,
            value: MASK,
            error: c.error,
            created_at: c.created_at,
            modified_at: c.modified_at,
        })
        .collect();
    Ok(success(CredentialList { credentials, total, next_page_token }).into_response())
}

/// The value of a credential.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialBody {
    /// The secret.
    #[schema(example = "s3cr3t")]
    value: String,
}

/// Store or replace a credential.
#[utoipa::path(
    put, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path, example = "API_TOKEN")), request_body = CredentialBody,
    responses((status = 200, body = Success<StoredCredential>))
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    // The parser's message could quote the value.
    let CredentialBody { value } = body.json().map_err(|_| {
        ApiError::bad_request(
            "invalid request body: expected `{\"value\": \"…\"}` with the secret as a string",
        )
    })?;
    if value == MASK {
        return Err(ApiError::bad_request("`***` masks the stored value; enter the new value"));
    }
    app.store().put_credential(identity.tenant.clone(), name.clone(), Secret::new(value)).await?;
    audit::note(&identity, "credential.put", &name);
    Ok(success(StoredCredential { name, value: MASK }).into_response())
}

/// Delete a credential.
#[utoipa::path(
    delete, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path, example = "API_TOKEN")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(name): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    app.store().delete_credential(identity.tenant.clone(), name.clone()).await?;
    audit::note(&identity, "credential.delete", &name);
    Ok(reply::message(format!("Credential '{name}' deleted")))
}
