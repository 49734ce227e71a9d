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
use serde_json::json;
use utoipa::ToSchema;

use crate::app::App;
use crate::body::Body;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, created, success};
use crate::routes::tool::Switch;
use crate::view::BundleView;

/// A page of bundles.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BundleList {
    bundles: Vec<BundleView>,
    total: usize,
    next_page_token: Option<String>,
}

/// Finds a bundle by id or slug; what belongs to others is not there.
pub(crate) fn find(app: &App, identity: &Identity, key: &str) -> Result<Arc<Bundle>, ApiError> {
    let snapshot = app.registry().snapshot();
    let found = match key.parse::<BundleId>() {
        Ok(id) => snapshot.bundle(id).filter(|bundle| bundle.tenant == identity.tenant).cloned(),
        Err(_) => snapshot.bundles(&identity.tenant).find(|bundle| bundle.slug.as_str() == key).cloned(),
    };
    found.ok_or_else(|| ApiError::not_found("bundle", key))
}

/// Inside a bundle that is switched off nothing changes. What is built in is the store's to refuse.
pub(crate) fn require_open(app: &App, identity: &Identity, entry: &Entry) -> Result<(), ApiError> {
    if entry.tool.built_in {
        return Ok(());
    }
    refuse_disabled(&*find(app, identity, &entry.tool.bundle_id.to_string())?)
}

/// Refuses changes inside a bundle that is switched off.
pub(crate) fn refuse_disabled(bundle: &Bundle) -> Result<(), ApiError> {
    if bundle.is_open() {
        return Ok(());
    }
    let message = format!("the bundle `{}` is disabled; enable it to change what is inside", bundle.slug);
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
    params(("bundle_ids" = Option<String>, Query), ("include_disabled" = Option<bool>, Query),
        ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query)),
    responses((status = 200, body = Success<BundleList>), (status = 400, body = ErrorBody))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let wanted = params.words("bundle_ids");
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
            let named = |word: &String| *word == bundle.id.to_string() || word == bundle.slug.as_str();
            wanted.is_empty() || wanted.iter().any(named)
        })
        .collect();
    bundles.sort_by(|a, b| a.slug.cmp(&b.slug));
    let total = bundles.len();
    let (part, next_page_token) = page.cut(bundles, |bundle| bundle.slug.to_string());
    let bundles = part
        .into_iter()
        .map(|bundle| BundleView::new(bundle, counts.get(&bundle.id).copied().unwrap_or_default()))
        .collect();
    Ok(success(BundleList { bundles, total, next_page_token }).into_response())
}

/// Show one bundle.
#[utoipa::path(
    get, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path, description = "id or slug")),
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

/// What a bundle is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BundleBody {
    slug: Option<String>,
    #[serde(default, alias = "displayName")]
    display_name: Option<String>,
    #[serde(default)]
    description: String,
    #[serde(default = "on", alias = "isEnabled", alias = "is_enabled")]
    enabled: bool,
}

fn on() -> bool {
    true
}

/// Create a bundle, replace it, or revive a deleted one.
#[utoipa::path(
    put, path = "/tools/bundles/{id}", tag = "bundles",
    params(("id" = String, Path, description = "A version 7 UUID, or the slug")), request_body = BundleBody,
    responses((status = 200, body = Success<BundleView>), (status = 201, body = Success<BundleView>),
        (status = 400, body = ErrorBody), (status = 409, body = ErrorBody))
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
        (Some(_), None) => return Err(ApiError::bad_request("`slug` is missing")),
        (None, Some(slug)) if slug != key => {
            let message = format!("`slug` is `{slug}`, the address says `{key}`; they must agree");
            return Err(ApiError::bad_request(message));
        }
        (_, slug) => slug.unwrap_or(key),
    };
    check_without_underscore(&slug)?;
    let put = PutBundle {
        id,
        tenant: identity.tenant.clone(),
        slug: BundleSlug::new(&slug)?,
        display_name: body.display_name.unwrap_or(slug),
        description: body.description,
        enabled: body.enabled,
    };
    let (bundle, put) = app.store().put_bundle(put).await?;
    app.audit(&identity, "bundle.put", bundle.slug.as_str());
    let view = view(&app, &identity, &bundle);
    Ok(match put {
        PutResult::Created => created(view),
        PutResult::Replaced => success(view).into_response(),
    })
}

/// Switch a bundle, and with it all its tools.
#[utoipa::path(
    patch, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path)), request_body = Switch,
    responses((status = 200, body = Success<BundleView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn patch(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(key): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let Switch { enabled } = body.json()?;
    let bundle = find(&app, &identity, &key)?;
    let bundle = app.store().enable_bundle(bundle.id, enabled).await?;
    app.audit(&identity, if enabled { "bundle.enable" } else { "bundle.disable" }, bundle.slug.as_str());
    Ok(success(view(&app, &identity, &bundle)).into_response())
}

/// Delete an empty bundle; it can be revived for 48 hours.
#[utoipa::path(
    delete, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path)),
    responses((status = 200, body = Success<Object>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    identity: Identity,
    Path(key): Path<String>,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let bundle = find(&app, &identity, &key)?;
    app.store().delete_bundle(bundle.id).await?;
    app.audit(&identity, "bundle.delete", bundle.slug.as_str());
    let message = format!("Bundle '{}' deleted; it can be revived for 48 hours", bundle.slug);
    Ok(success(json!({"message": message})).into_response())
}
