//! `/tenants`: the owners of tools, calls, credentials and tokens. Only platform admins manage them.

use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use haft_core::Timestamp;
use haft_core::name::TenantId;
use haft_core::tenant::{self, FileRoot, Tenant, TenantLimits};
use haft_store::TenantChange;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::{self, Body};
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};

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
    State(app): State<Arc<App>>,
    identity: Identity,
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
    State(app): State<Arc<App>>,
    identity: Identity,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let NewTenant { id, name } = body.json()?;
    let id = tenant::parse_new_id(&id)?;
    let name = name.map_or_else(|| id.to_string(), |name| name.trim().to_owned());
    let tenant = app.store().create_tenant(id, name).await?;
    app.reload_access().await?;
    audit::note(&identity, "tenant.create", tenant.id.as_str());
    Ok(created(view(tenant)))
}

/// Get a tenant.
#[utoipa::path(
    get, path = "/tenants/{id}", tag = "tenants", params(("id" = String, Path, example = "acme")),
    responses((status = 200, body = Success<TenantView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let found = app.store().tenants().await?.into_iter().find(|tenant| tenant.id.as_str() == id);
    let tenant = found.ok_or_else(|| ApiError::not_found("tenant", &id))?;
    Ok(success(view(tenant)).into_response())
}

/// Rename, enable or disable a tenant, or change its settings.
#[utoipa::path(
    patch, path = "/tenants/{id}", tag = "tenants", params(("id" = String, Path, example = "acme")),
    request_body = TenantPatch,
    responses((status = 200, body = Success<TenantView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let patch: TenantPatch = body.json()?;
    let parsed = parse_id(&id)?;
    check_outside_home(&app, patch.file_roots.as_deref().unwrap_or_default())?;
    let change = TenantChange {
        name: patch.name.map(|name| name.trim().to_owned()),
        enabled: patch.enabled,
        file_roots: patch.file_roots,
        environment: patch.environment,
        limits: patch.limits,
    };
    let tenant = app.store().update_tenant(parsed, change).await?;
    app.reload_access().await?;
    audit::note(&identity, "tenant.update", &id);
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
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    identity.require_platform()?;
    let parsed = parse_id(&id)?;
    if app.access().tenant(&parsed).is_none() {
        return Err(ApiError::not_found("tenant", &id));
    }
    if params.get("confirm") != Some(id.as_str()) {
        return Err(ApiError::bad_request(format!(
            "deleting a tenant removes its tools, calls, credentials, tokens and files; confirm it with `?confirm={id}`"
        )));
    }
    app.store().delete_tenant(parsed).await?;
    app.reload_access().await?;
    audit::note(&identity, "tenant.delete", &id);
    Ok(reply::message(format!("Tenant '{id}' deleted")))
}

fn parse_id(id: &str) -> Result<TenantId, ApiError> {
    id.parse().map_err(|_| ApiError::not_found("tenant", id))
}

/// Rejects roots that overlap the home folder, which holds keys, tokens and the files of other tenants.
fn check_outside_home(app: &App, roots: &[FileRoot]) -> Result<(), ApiError> {
    let home = &app.settings().home;
    // A link could hide the home folder.
    let real_home = std::fs::canonicalize(home).unwrap_or_else(|_| home.clone());
    for (index, root) in roots.iter().enumerate() {
        let path = FilePath::new(&root.path);
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let overlaps = |home: &FilePath, path: &FilePath| path.starts_with(home) || home.starts_with(path);
        if overlaps(home, path) || overlaps(&real_home, &real) {
            return Err(ApiError::bad_request(format!(
                "invalid `file_roots[{index}].path`: must be outside of the home folder of haft"
            )));
        }
    }
    Ok(())
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
