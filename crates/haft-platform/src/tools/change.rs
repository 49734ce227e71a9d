//! Creating, changing and deleting tools.

use std::sync::Arc;

use haft_core::catalog::{Backup, NewTool, SourceText, ToolChange};
use haft_core::implementation::Implementation;
use haft_core::name::BundleSlug;
use haft_core::outcome::ErrorCode;
use haft_core::problem::{Problem, excerpt};
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::{Revision, Source, Status, Tool};
use haft_definition::dialect::ParsedDefinition;
use haft_runtime::registry::Entry;
use haft_store::DeletedTool;

use super::find::find;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::resource_usage::{UsedTool, require_unused};
use crate::{audit, bundles, definition};

/// Checks and stores a new tool, for all surfaces.
pub async fn store(
    app: &Context,
    identity: &Identity,
    bundle: Option<&str>,
    parsed: ParsedDefinition,
    text: Option<SourceText>,
) -> Result<(Tool, Vec<Problem>), ServiceError> {
    definition::reject_published(parsed.status, None)?;
    let is_disabled = parsed.status == Some(Status::Disabled);
    definition::reject_other_scope(parsed.scope.as_deref())?;
    let bundle = bundle_slug(app, identity, bundle.or(parsed.bundle.as_deref()))?;
    if let Ok(existing) = bundles::find(app, identity, bundle.as_str()) {
        // A deleted bundle is restored only through its own route.
        bundles::require_enabled(&existing)?;
    }
    let folder = app.store().catalog().bundle_folder(&identity.tenant, &bundle);
    let checked = definition::check(app, &identity.tenant, (parsed, text.as_ref()), None, folder).await?;
    if is_disabled && checked.enabled == Some(true) {
        return Err(ServiceError::bad_request(
            "`status` is `disabled`, but `enabled` is true; leave one of them out",
        ));
    }
    let new = NewTool {
        tenant: identity.tenant.clone(),
        bundle,
        spec: checked.spec,
        form: checked.form,
        text,
        enabled: checked.enabled.unwrap_or(!is_disabled),
        source: Source::User,
    };
    Ok((app.store().catalog().create_tool(new).await?, checked.warnings))
}

/// Returns the bundle that a definition names by slug or id; the default is the bundle of user-created tools.
pub fn bundle_slug(
    app: &Context,
    identity: &Identity,
    named: Option<&str>,
) -> Result<BundleSlug, ServiceError> {
    let Some(named) = named else { return Ok(BundleSlug::user_created()) };
    if let Ok(id) = named.parse() {
        let snapshot = app.registry().snapshot();
        let bundle = snapshot.bundle(id).filter(|bundle| identity.tenant.sees(&bundle.tenant));
        return bundle
            .map(|bundle| bundle.slug.clone())
            .ok_or_else(|| ServiceError::not_found("bundle", named));
    }
    Ok(BundleSlug::new(named)?)
}

/// A function of a toolset stays in its package, which definitions cannot name.
fn keep_package(spec: &mut ToolSpec, stored: &ToolSpec) {
    if let (Implementation::Python(new), Implementation::Python(old)) =
        (&mut spec.implementation, &stored.implementation)
    {
        new.package.clone_from(&old.package);
    }
}

/// Finds a tool whose definition may be replaced.
pub fn changeable(app: &Context, identity: &Identity, reference: &str) -> Result<Arc<Entry>, ServiceError> {
    let entry = find(app, identity, reference)?;
    bundles::require_enabled_bundle(app, identity, &entry)?;
    Ok(entry)
}

/// Replaces the definition of a tool: a new revision. Returns the tool with the warnings about its definition.
pub async fn update(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    mut parsed: ParsedDefinition,
    text: Option<SourceText>,
) -> Result<(Tool, Vec<Problem>), ServiceError> {
    let tool = &entry.tool;
    keep_package(&mut parsed.spec, &tool.spec);
    definition::require_same_identity(&parsed.spec, &tool.spec)?;
    definition::reject_published(parsed.status, Some(tool.status))?;
    let bundle_mismatch = definition::bundle_mismatch(parsed.bundle.as_deref(), tool);
    let status = parsed.status;
    let folder = tool.folder().map(str::to_owned);
    let checked =
        definition::check(app, &identity.tenant, (parsed, text.as_ref()), Some(&tool.spec), folder).await?;
    let change = ToolChange { spec: checked.spec, text, status, enabled: checked.enabled };
    let updated = app.store().catalog().update_tool(tool.id, change).await?;
    audit::note(identity, "tool.update", &updated.qualified());
    let mut warnings = checked.warnings;
    warnings.extend(bundle_mismatch);
    Ok((updated, warnings))
}

/// Rejects callers who may not enable and disable a tool, and tools of disabled bundles.
pub fn check_switchable(app: &Context, identity: &Identity, entry: &Entry) -> Result<(), ServiceError> {
    identity.require_editor_of(&entry.tool.tenant)?;
    bundles::require_enabled_bundle(app, identity, entry)
}

/// Enables or disables a tool.
pub async fn set_enabled(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    enabled: bool,
) -> Result<Tool, ServiceError> {
    check_switchable(app, identity, entry)?;
    let tool = app.store().catalog().enable_tool(entry.tool.id, enabled).await?;
    audit::note(identity, if enabled { "tool.enable" } else { "tool.disable" }, &tool.qualified());
    Ok(tool)
}

/// How a tool is deleted.
#[derive(Debug, Clone, Copy)]
pub struct Deletion {
    /// With a backup the tool can be restored for 48 hours.
    pub backup: Backup,
    /// Whether to delete it even if it is in use.
    pub force: bool,
}

/// Deletes a tool; returns the path of the backup of its definition, if one is kept. A tool that is in use is deleted only
/// with `force`.
pub async fn delete(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    Deletion { backup, force }: Deletion,
) -> Result<Option<String>, ServiceError> {
    identity.require(Role::Editor)?;
    // The store rejects the deletion of built-in tools and tools of MCP servers, even with `force`.
    if !force && matches!(entry.tool.source, Source::User | Source::Toolset) {
        require_unused(app, &UsedTool { entry, tenant: &identity.tenant }).await?;
    }
    let backup_path = app.store().catalog().delete_tool(entry.tool.id, backup).await?;
    audit::note(identity, "tool.delete", &entry.qualified);
    Ok(backup_path)
}

/// Returns the deleted tools that a caller may restore, the last one first.
pub async fn deleted(app: &Context, identity: &Identity) -> Result<Vec<DeletedTool>, ServiceError> {
    identity.require(Role::Editor)?;
    let mut deleted = app.store().catalog().deleted_tools(&identity.tenant).await?;
    deleted.retain(|deleted| identity.principal().tools.allows(&deleted.tool));
    Ok(deleted)
}

/// Restores a deleted tool as it was, with its revisions. If several match the reference, it is the last one.
pub async fn undelete(app: &Context, identity: &Identity, reference: &str) -> Result<Tool, ServiceError> {
    let wanted: ToolRef = reference.parse()?;
    audit::note(identity, "tool.undelete", &excerpt(reference, 120));
    let deleted = deleted(app, identity).await?;
    let Some(found) = deleted.into_iter().find(|deleted| is_named(&deleted.tool, &wanted)) else {
        if find(app, identity, reference).is_ok() {
            let message = format!("the tool `{}` is not deleted", excerpt(reference, 120));
            return Err(ServiceError::new(ErrorCode::Conflict, message));
        }
        return Err(ServiceError::not_found("deleted tool", reference));
    };
    Ok(app.store().catalog().undelete_tool(&identity.tenant, found.tool.id).await?)
}

fn is_named(tool: &Tool, reference: &ToolRef) -> bool {
    match reference {
        ToolRef::Id(id) => tool.id == *id,
        ToolRef::Name { bundle, name, version } => {
            tool.spec.name == *name
                && bundle.as_ref().is_none_or(|bundle| tool.bundle == *bundle)
                && version.as_ref().is_none_or(|version| tool.spec.version == *version)
        }
    }
}

/// Restores an earlier revision as the newest one.
pub async fn restore(
    app: &Context,
    identity: &Identity,
    entry: &Entry,
    revision: &Revision,
) -> Result<Tool, ServiceError> {
    // The version label belongs to the tool, not to the revision.
    let mut spec = ToolSpec::clone(&revision.spec);
    spec.version = entry.tool.spec.version.clone();
    let tool = app.store().catalog().update_tool(entry.tool.id, spec.into()).await?;
    audit::note(identity, "tool.restore", &tool.qualified());
    Ok(tool)
}
