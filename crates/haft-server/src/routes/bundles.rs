//! `/tools/bundles` and `/tools/bundles/{id}`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_core::bundle::Bundle;
use haft_core::catalog::{PutBundle, PutResult};
use haft_core::id::{BundleId, IdError};
use haft_core::name::{BundleSlug, check_without_underscore};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_runtime::registry::Entry;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::audit;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::routes::tool::EnabledBody;
use crate::view::BundleView;

/// A page of bundles.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BundleList {
    bundles: Vec<BundleView>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// Finds a bundle that the caller's tenant sees by id or slug.
pub(crate) fn find(app: &App, identity: &Identity, key: &str) -> Result<Arc<Bundle>, ApiError> {
    let snapshot = app.registry().snapshot();
    let bundle = match key.parse::<BundleId>() {
        Ok(id) => snapshot.bundle(id).filter(|bundle| identity.tenant.sees(&bundle.tenant)).cloned(),
        Err(_) => snapshot.bundles(&identity.tenant).find(|bundle| bundle.slug.as_str() == key).cloned(),
    };
    bundle.ok_or_else(|| ApiError::not_found("bundle", key))
}

/// Rejects changes to a tool whose bundle is disabled. The store itself rejects changes to built-in tools.
pub(crate) fn require_enabled_bundle(app: &App, identity: &Identity, entry: &Entry) -> Result<(), ApiError> {
    if entry.tool.built_in {
        return Ok(());
    }
    require_enabled(&*find(app, identity, &entry.tool.bundle_id.to_string())?)
}

/// Rejects changes in a disabled bundle.
pub(crate) fn require_enabled(bundle: &Bundle) -> Result<(), ApiError> {
    if bundle.is_open() {
        return Ok(());
    }
    let message = format!("bundle `{}` is disabled; enable it to change its tools", bundle.slug);
    Err(ApiError::new(ErrorCode::Disabled, message))
}

fn view(app: &App, identity: &Identity, bundle: &Bundle) -> BundleView {
    let snapshot = app.registry().snapshot();
    let count = snapshot.tools(&identity.tenant).filter(|entry| entry.tool.bundle_id == bundle.id).count();
    BundleView::new(bundle, count)
}

/// List bundles.
#[utoipa::path(
    get, path = "/tools/bundles", tag = "bundles",
    params(("bundle_ids" = Option<String>, Query, description = "Comma-separated ids or slugs"),
        ("include_disabled" = Option<bool>, Query), PageParams),
    responses((status = 200, body = Success<BundleList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let ids = params.list("bundle_ids");
    let include_disabled = params.flag("include_disabled")?;
    let page = params.page("bundles")?;
    let snapshot = app.registry().snapshot();
    let mut counts: HashMap<BundleId, usize> = HashMap::new();
    for entry in snapshot.tools(&identity.tenant) {
        *counts.entry(entry.tool.bundle_id).or_default() += 1;
    }
    let mut bundles: Vec<_> = snapshot
        .bundles(&identity.tenant)
        .filter(|bundle| bundle.soft_deleted_at.is_none() && (include_disabled || bundle.enabled))
        .filter(|bundle| {
            let is_listed = |id: &String| *id == bundle.id.to_string() || id == bundle.slug.as_str();
            ids.is_empty() || ids.iter().any(is_listed)
        })
        .collect();
    bundles.sort_by(|a, b| a.slug.cmp(&b.slug));
    let total = bundles.len();
    let (selected, next_page_token) = page.select(bundles, |bundle| bundle.slug.to_string());
    let bundles = selected
        .into_iter()
        .map(|bundle| BundleView::new(bundle, counts.get(&bundle.id).copied().unwrap_or_default()))
        .collect();
    Ok(success(BundleList { bundles, total, next_page_token }).into_response())
}

/// Return one bundle.
#[utoipa::path(
    get, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path, description = "Id or slug", example = "demo")),
    responses((status = 200, body = Success<BundleView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let bundle = find(&app, &identity, &id)?;
    Ok(success(view(&app, &identity, &bundle)).into_response())
}

/// The fields of a bundle.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct BundleBody {
    /// The slug; required if the path has an id.
    #[schema(example = "demo")]
    slug: Option<String>,
    #[serde(default, alias = "displayName")]
    #[schema(example = "Demo")]
    display_name: Option<String>,
    #[serde(default)]
    #[schema(example = "Tools of the demo")]
    description: String,
    #[serde(default = "enabled_by_default", alias = "isEnabled", alias = "is_enabled")]
    enabled: bool,
}

fn enabled_by_default() -> bool {
    true
}

/// Create or replace a bundle, or restore a deleted one.
#[utoipa::path(
    put, path = "/tools/bundles/{id}", tag = "bundles",
    params(("id" = String, Path, description = "A UUID of version 7, or the slug", example = "demo")), request_body = BundleBody,
    responses((status = 200, body = Success<BundleView>), (status = 201, body = Success<BundleView>),
        (status = 409, body = ErrorBody))
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(key): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let body: BundleBody = body.json()?;
    let id = match key.parse::<BundleId>() {
        Ok(id) => Some(id),
        Err(error @ IdError::NotVersion7(_)) => return Err(ApiError::bad_request(error.to_string())),
        Err(IdError::NotUuid(_)) => None,
    };
    let slug = match (&id, body.slug) {
        (Some(_), None) => return Err(ApiError::bad_request("missing `slug`")),
        (None, Some(slug)) if slug != key => {
            let message = format!("slug mismatch: the body has `{slug}`, the path has `{key}`");
            return Err(ApiError::bad_request(message));
        }
        (_, slug) => slug.unwrap_or(key),
    };
    if find(&app, &identity, &slug).is_err() {
        check_without_underscore(&slug)?;
    }
    let put = PutBundle {
        id,
        tenant: identity.tenant.clone(),
        slug: BundleSlug::new(&slug)?,
        display_name: body.display_name.unwrap_or(slug),
        description: body.description,
        enabled: body.enabled,
    };
    let (bundle, result) = app.store().put_bundle(put).await?;
    audit::note(&identity, "bundle.put", bundle.slug.as_str());
    let view = view(&app, &identity, &bundle);
    Ok(match result {
        PutResult::Created => created(view),
        PutResult::Replaced => success(view).into_response(),
    })
}

/// Enable or disable a bundle with all its tools.
#[utoipa::path(
    patch, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path, description = "Id or slug", example = "demo")), request_body = EnabledBody,
    responses((status = 200, body = Success<BundleView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(key): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let EnabledBody { enabled } = body.json()?;
    let bundle = find(&app, &identity, &key)?;
    identity.require_editor_of(&bundle.tenant)?;
    let bundle = app.store().enable_bundle(bundle.id, enabled).await?;
    audit::note(&identity, if enabled { "bundle.enable" } else { "bundle.disable" }, bundle.slug.as_str());
    Ok(success(view(&app, &identity, &bundle)).into_response())
}

/// Delete an empty bundle; it can be restored for 48 hours.
#[utoipa::path(
    delete, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path, description = "Id or slug", example = "demo")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(key): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let bundle = find(&app, &identity, &key)?;
    app.store().delete_bundle(bundle.id).await?;
    audit::note(&identity, "bundle.delete", bundle.slug.as_str());
    Ok(reply::message(format!("Bundle '{}' deleted; it can be restored for 48 hours", bundle.slug)))
}
