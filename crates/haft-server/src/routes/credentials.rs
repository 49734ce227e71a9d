//! `/credentials`: stored secrets. Values go in and never come out.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::secret::{MASK, Secret};
use haft_core::token::Role;
use serde::Deserialize;
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::success;

/// List the names of stored credentials.
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
    let (part, next_page_token) = page.cut(all, |credential| credential.name.clone());
    let credentials: Vec<_> = part
        .iter()
        .map(|c| {
            json!({"name": c.name, "value": MASK, "error": c.error, "created_at": c.created_at,
                   "modified_at": c.modified_at})
        })
        .collect();
    Ok(success(json!({"credentials": credentials, "total": total, "next_page_token": next_page_token}))
        .into_response())
}

/// The value of a credential.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Value {
    value: String,
}

/// Store a credential under a name, in place of an earlier one.
#[utoipa::path(
    put, path = "/credentials/{name}", tag = "credentials", params(("name" = String, Path)), request_body = Value,
    responses((status = 200, body = Object), (status = 400, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Admin)?;
    // The parser's own words could quote the value.
    let Value { value } = body.json().map_err(|_| {
        ApiError::bad_request("the body must be `{\"value\": \"…\"}` with the secret as a string")
    })?;
    if value == MASK {
        return Err(ApiError::bad_request("`***` stands for a stored value; write the new one"));
    }
    app.store().put_credential(identity.tenant.clone(), name.clone(), Secret::new(value)).await?;
    app.audit(&identity, "credential.put", &name);
    Ok(success(json!({"name": name, "value": MASK})).into_response())
}

/// Remove a credential.
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
    app.audit(&identity, "credential.delete", &name);
    Ok(success(json!({"message": format!("Credential '{name}' deleted")})).into_response())
}
