//! Bundles: finding them, and the rules of changing them and their tools.

use std::sync::Arc;

use haft_core::bundle::Bundle;
use haft_core::catalog::{PutBundle, PutResult};
use haft_core::id::{BundleId, IdError};
use haft_core::name::{BundleSlug, check_without_underscore};
use haft_core::outcome::ErrorCode;
use haft_core::token::Role;
use haft_runtime::registry::Entry;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Finds a bundle that the caller's tenant sees by id or slug.
pub fn find(app: &Context, identity: &Identity, key: &str) -> Result<Arc<Bundle>, ServiceError> {
    let snapshot = app.registry().snapshot();
    let bundle = match key.parse::<BundleId>() {
        Ok(id) => snapshot.bundle(id).filter(|bundle| identity.tenant.sees(&bundle.tenant)).cloned(),
        Err(_) => snapshot.bundles(&identity.tenant).find(|bundle| bundle.slug.as_str() == key).cloned(),
    };
    bundle.ok_or_else(|| ServiceError::not_found("bundle", key))
}

/// Rejects changes to a tool whose bundle is disabled. The store itself rejects changes to built-in tools.
pub fn require_enabled_bundle(app: &Context, identity: &Identity, entry: &Entry) -> Result<(), ServiceError> {
    if entry.tool.built_in {
        return Ok(());
    }
    require_enabled(&*find(app, identity, &entry.tool.bundle_id.to_string())?)
}

/// Rejects changes in a disabled bundle.
pub fn require_enabled(bundle: &Bundle) -> Result<(), ServiceError> {
    if bundle.is_open() {
        return Ok(());
    }
    let message = format!("bundle `{}` is disabled; enable it to change its tools", bundle.slug);
    Err(ServiceError::new(ErrorCode::Disabled, message))
}

/// What a bundle becomes.
pub struct BundleFields {
    /// The slug; required if the key is an id.
    pub slug: Option<String>,
    pub display_name: Option<String>,
    pub description: String,
    pub enabled: bool,
}

/// Creates or replaces a bundle, or restores a deleted one. The key is its id or its slug.
pub async fn put(
    app: &Context,
    identity: &Identity,
    key: String,
    fields: BundleFields,
) -> Result<(Bundle, PutResult), ServiceError> {
    let id = match key.parse::<BundleId>() {
        Ok(id) => Some(id),
        Err(error @ IdError::NotVersion7(_)) => return Err(ServiceError::bad_request(error.to_string())),
        Err(IdError::NotUuid(_)) => None,
    };
    let slug = match (&id, fields.slug) {
        (Some(_), None) => return Err(ServiceError::bad_request("missing `slug`")),
        (None, Some(slug)) if slug != key => {
            let message = format!("slug mismatch: the body has `{slug}`, the path has `{key}`");
            return Err(ServiceError::bad_request(message));
        }
        (_, slug) => slug.unwrap_or(key),
    };
    if find(app, identity, &slug).is_err() {
        check_without_underscore(&slug)?;
    }
    let put = PutBundle {
        id,
        tenant: identity.tenant.clone(),
        slug: BundleSlug::new(&slug)?,
        display_name: fields.display_name.unwrap_or(slug),
        description: fields.description,
        enabled: fields.enabled,
    };
    let (bundle, result) = app.store().catalog().put_bundle(put).await?;
    audit::note(identity, "bundle.put", bundle.slug.as_str());
    Ok((bundle, result))
}

/// Enables or disables a bundle with all its tools.
pub async fn set_enabled(
    app: &Context,
    identity: &Identity,
    key: &str,
    enabled: bool,
) -> Result<Bundle, ServiceError> {
    let bundle = find(app, identity, key)?;
    identity.require_editor_of(&bundle.tenant)?;
    let bundle = app.store().catalog().enable_bundle(bundle.id, enabled).await?;
    audit::note(identity, if enabled { "bundle.enable" } else { "bundle.disable" }, bundle.slug.as_str());
    Ok(bundle)
}

/// Deletes an empty bundle; it can be restored for some time.
pub async fn delete(app: &Context, identity: &Identity, key: &str) -> Result<Arc<Bundle>, ServiceError> {
    identity.require(Role::Editor)?;
    let bundle = find(app, identity, key)?;
    app.store().catalog().delete_bundle(bundle.id).await?;
    audit::note(identity, "bundle.delete", bundle.slug.as_str());
    Ok(bundle)
}
