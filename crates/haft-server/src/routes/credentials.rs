//! `/credentials`: stored secrets. Values are never returned.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::secret::{MASK, Secret};
use haft_core::token::Role;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{self, success};

/// List stored credentials, without their values.
#[utoipa::path(get, path = "/credentials", tag = "credentials", responses((status = 200, body = Object)))]
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
    let credentials: Vec<_> = selected
        .iter()
        .map(|c| {
            json!({"name": c.name, "value": MASK, "error": c.error, "created_at": c.created_at,
                   "modified_at": c.modified_at})
        })
        .collect();
    Ok(reply::list("credentials", &credentials, total, next_page_token.as_deref()))
}

/// The value of a credential.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialBody {
    value: String,
}

/// Store or replace a credential.
#[utoipa::path(
    put, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path)), request_body = CredentialBody,
    responses((status = 200, body = Object), (status = 400, body = ErrorBody))
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
    Ok(success(json!({"name": name, "value": MASK})).into_response())
}

/// Delete a credential.
#[utoipa::path(
    delete, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path)),
    responses((status = 200, body = Object), (status = 404, body = ErrorBody))
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
