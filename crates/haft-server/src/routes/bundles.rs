//! `/tools/bundles` and `/tools/bundles/{id}`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use haft_api::bundle::{BundleList, BundleView};
use haft_core::bundle::{Bundle, BundleKind};
use haft_core::catalog::PutResult;
use haft_core::id::BundleId;
use haft_core::token::Role;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::routes::tool::EnabledBody;
use haft_platform::Installation;
use haft_platform::bundles::{self, BundleFields};
use haft_platform::identity::Identity;

fn view(app: &Installation, identity: &Identity, bundle: &Bundle) -> BundleView {
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
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
    // The built-in bundles come last, as the built-in tools do in lists of tools.
    let key = |bundle: &Bundle| format!("{}{}", u8::from(bundle.kind == BundleKind::BuiltIn), bundle.slug);
    bundles.sort_by_cached_key(|bundle| key(bundle));
    let total = bundles.len();
    let (selected, next_page_token) = page.select(bundles, |bundle| key(bundle));
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(id): Path<String>,
) -> Result<Response, ApiError> {
    let bundle = bundles::find(&app, &identity, &id)?;
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(key): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let BundleBody { slug, display_name, description, enabled } = body.json()?;
    let fields = BundleFields { slug, display_name, description, enabled };
    let (bundle, result) = bundles::put(&app, &identity, key, fields).await?;
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
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(key): Path<String>,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let EnabledBody { enabled } = body.json()?;
    let bundle = bundles::set_enabled(&app, &identity, &key, enabled).await?;
    Ok(success(view(&app, &identity, &bundle)).into_response())
}

/// Delete an empty bundle; it can be restored for 48 hours.
#[utoipa::path(
    delete, path = "/tools/bundles/{id}", tag = "bundles", params(("id" = String, Path, description = "Id or slug", example = "demo")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody), (status = 409, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(key): Path<String>,
) -> Result<Response, ApiError> {
    let bundle = bundles::delete(&app, &identity, &key).await?;
    Ok(reply::message(format!("Bundle '{}' deleted; it can be restored for 48 hours", bundle.slug)))
}
