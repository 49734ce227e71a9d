//! `/tenants`: the owners of tools, calls, credentials and tokens. Only platform admins manage them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_api::tenant::{NewTenant, TenantList, TenantPatch, TenantView};
use haft_store::TenantChange;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::tenants;

/// List tenants.
#[utoipa::path(get, path = "/tenants", tag = "tenants", params(PageParams), responses((status = 200, body = Success<TenantList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let page = params.page("tenants")?;
    let all = app.store().tenants().all().await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |tenant| tenant.id.to_string());
    let tenants = selected.into_iter().map(TenantView::from).collect();
    Ok(success(TenantList { tenants, total, next_page_token }).into_response())
}

/// Create a tenant.
#[utoipa::path(
    post, path = "/tenants", tag = "tenants", request_body = NewTenant,
    responses((status = 201, body = Success<TenantView>), (status = 409, body = ErrorBody))
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let NewTenant { id, name } = body.json()?;
    let tenant = tenants::create(&app, &identity, &id, name).await?;
    Ok(created(TenantView::from(tenant)))
}

/// Get a tenant.
#[utoipa::path(
    get, path = "/tenants/{id}", tag = "tenants", params(("id" = String, Path, example = "acme")),
    responses((status = 200, body = Success<TenantView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let tenant = tenants::find(&app, &id).await?;
    Ok(success(TenantView::from(tenant)).into_response())
}

/// Rename, enable or disable a tenant, or change its settings.
#[utoipa::path(
    patch, path = "/tenants/{id}", tag = "tenants", params(("id" = String, Path, example = "acme")),
    request_body = TenantPatch,
    responses((status = 200, body = Success<TenantView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let patch: TenantPatch = body.json()?;
    let change = TenantChange {
        name: patch.name,
        enabled: patch.enabled,
        file_roots: patch.file_roots,
        environment: patch.environment,
        limits: patch.limits,
    };
    let tenant = tenants::update(&app, &identity, &id, change).await?;
    Ok(success(TenantView::from(tenant)).into_response())
}

/// Delete a tenant with its tools, calls, credentials, tokens and files. Its audit records stay.
#[utoipa::path(
    delete, path = "/tenants/{id}", tag = "tenants",
    params(
        ("id" = String, Path, example = "acme"),
        ("confirm" = Option<String>, Query, description = "The id again, to confirm the deletion", example = "acme"),
    ),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    tenants::delete(&app, &identity, &id, params.get("confirm")).await?;
    Ok(reply::message(format!("Tenant '{id}' deleted")))
}
