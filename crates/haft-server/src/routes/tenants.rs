//! `/tenants`: the owners of tools, calls, credentials and tokens. Only platform admins manage them.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::Timestamp;
use haft_core::tenant::{FileRoot, Tenant, TenantLimits};
use haft_store::TenantChange;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use haft_platform::Installation;
use haft_platform::tenants;

/// A tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantView {
    #[schema(example = "acme")]
    id: String,
    #[schema(example = "Acme Inc.")]
    name: String,
    /// Whether its tokens work.
    enabled: bool,
    /// Folders that its file tools may use, besides its own one.
    file_roots: Vec<FileRoot>,
    /// The environment variables that its tools may read as `${NAME}`; `*` stands for every configured one.
    #[schema(example = json!(["WEATHER_API_KEY"]))]
    environment: Vec<String>,
    limits: TenantLimits,
    created_at: Timestamp,
    modified_at: Timestamp,
}

/// A page of tenants.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TenantList {
    tenants: Vec<TenantView>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A new tenant.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct NewTenant {
    /// The id, which cannot be changed: 1 to 64 lower-case letters, digits, `-` and `_`.
    #[schema(example = "acme", min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$")]
    id: String,
    /// The name for people; default: the id.
    #[schema(example = "Acme Inc.", min_length = 1, max_length = 100)]
    name: Option<String>,
}

/// Changes of a tenant; what is missing stays.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub(crate) struct TenantPatch {
    /// The name for people.
    #[schema(example = "Acme Inc.", min_length = 1, max_length = 100)]
    name: Option<String>,
    /// Whether its tokens work.
    enabled: Option<bool>,
    /// Folders that its file tools may use, besides its own one; replaces the list.
    #[schema(max_items = 32)]
    file_roots: Option<Vec<FileRoot>>,
    /// The environment variables that its tools may read; replaces the list. `*` stands for every configured one.
    #[schema(max_items = 256, example = json!(["WEATHER_API_KEY"]))]
    environment: Option<Vec<String>>,
    /// The limits; replaces all of them.
    #[serde(deserialize_with = "body::optional_object")]
    limits: Option<TenantLimits>,
}

/// List tenants.
#[utoipa::path(get, path = "/tenants", tag = "tenants", params(PageParams), responses((status = 200, body = Success<TenantList>)))]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let page = params.page("tenants")?;
    let all = app.store().tenants().await?;
    let total = all.len();
    let (selected, next_page_token) = page.select(all, |tenant| tenant.id.to_string());
    let tenants = selected.into_iter().map(view).collect();
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
    Ok(created(view(tenant)))
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
    Ok(success(view(tenant)).into_response())
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
    Ok(success(view(tenant)).into_response())
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

fn view(tenant: Tenant) -> TenantView {
    let Tenant { id, name, enabled, settings, created_at, modified_at } = tenant;
    TenantView {
        id: id.to_string(),
        name,
        enabled,
        file_roots: settings.file_roots,
        environment: settings.environment,
        limits: settings.limits,
        created_at,
        modified_at,
    }
}
