//! Operations that are the same for every kind of resource: find, create, change, publish, deprecate, enable, restore,
//! delete. The module of each kind implements [`ServedKind`] with the differences.

use haft_core::live::ResourceAction;
use haft_core::problem::{Problem, excerpt};
use haft_core::resource::{Resource, ResourceRevision};
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_store::{ResourceQuery, ResourceUpdate};

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::field_changes::{FieldChange, compare};
use crate::identity::Identity;
use crate::resource_kind::ServedKind;
use crate::resource_usage::require_unused;

/// Finds a resource of the caller's tenant by its id or slug.
pub async fn find<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    reference: &str,
) -> Result<Resource<S>, ServiceError> {
    let found = app.store().resources::<S>().find(&identity.tenant, reference).await?;
    let found = found.filter(|resource| identity.sees_resource(S::KIND, resource.definition.slug()));
    found.ok_or_else(|| ServiceError::not_found(S::KIND.noun(), reference))
}

/// Notes a change of a resource for the audit log.
fn note<S: ServedKind>(identity: &Identity, change: ResourceAction, definition: &S) {
    audit::note(identity, S::KIND.audit_action(change), definition.slug());
}

/// Lists the resources of the caller's tenant that it may see, with the number of all that match. Only who can restore deleted ones sees
/// them.
pub async fn list<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    query: &ResourceQuery,
) -> Result<(Vec<Resource<S>>, u64), ServiceError> {
    if query.deleted {
        identity.require(Role::Editor)?;
    }
    let slugs = identity.visible_slugs(S::KIND);
    let query = ResourceQuery { slugs, ..query.clone() };
    Ok(app.store().resources::<S>().list(&identity.tenant, &query).await?)
}

/// Creates a resource, as a draft. Returns it with the warnings about it.
pub async fn create<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    definition: S,
) -> Result<(Resource<S>, Vec<Problem>), ServiceError> {
    identity.require(Role::Editor)?;
    note(identity, ResourceAction::Created, &definition);
    let warnings = S::check_saved(app, identity, &definition).await?;
    let created = app.store().resources().create(&identity.tenant, definition, &identity.name).await?;
    S::announce(app).await?;
    Ok((created, warnings))
}

/// Replaces the definition of a resource: a new revision. Returns it with the warnings about it.
pub async fn update<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    earlier: &Resource<S>,
    definition: S,
    expected_revision: Option<u32>,
) -> Result<(Resource<S>, Vec<Problem>), ServiceError> {
    identity.require(Role::Editor)?;
    note(identity, ResourceAction::Updated, &definition);
    let warnings = S::check_saved(app, identity, &definition).await?;
    Ok((replace(app, identity, earlier, definition, expected_revision).await?, warnings))
}

async fn replace<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    earlier: &Resource<S>,
    definition: S,
    expected_revision: Option<u32>,
) -> Result<Resource<S>, ServiceError> {
    let update = ResourceUpdate { definition, expected_revision, author: identity.name.to_string() };
    let updated = app.store().resources().update(&identity.tenant, earlier.id, update).await?;
    S::announce(app).await?;
    Ok(updated)
}

/// Publishes the newest revision of a resource, unless it changes meanwhile. Returns it with the warnings about it.
pub async fn publish<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    reference: &str,
) -> Result<(Resource<S>, Vec<Problem>), ServiceError> {
    identity.require(Role::Editor)?;
    let found = find::<S>(app, identity, reference).await?;
    note(identity, ResourceAction::Published, &*found.definition);
    let warnings = S::check_published(app, identity, &found)?;
    let resources = app.store().resources::<S>();
    // Publishes only the checked revision.
    let published = resources.publish(&identity.tenant, found.id, Some(found.revision)).await?;
    S::announce(app).await?;
    Ok((published, warnings))
}

/// Deprecates a resource: it still works.
pub async fn deprecate<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    reference: &str,
) -> Result<Resource<S>, ServiceError> {
    identity.require(Role::Editor)?;
    let found = find::<S>(app, identity, reference).await?;
    note(identity, ResourceAction::Deprecated, &*found.definition);
    let resources = app.store().resources::<S>();
    let deprecated = resources.set_status(&identity.tenant, found.id, Status::Deprecated).await?;
    S::announce(app).await?;
    Ok(deprecated)
}

/// Enables or disables a resource.
pub async fn set_enabled<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    reference: &str,
    enabled: bool,
) -> Result<Resource<S>, ServiceError> {
    identity.require(Role::Editor)?;
    let found = find::<S>(app, identity, reference).await?;
    let action = if enabled { ResourceAction::Enabled } else { ResourceAction::Disabled };
    note(identity, action, &*found.definition);
    let changed = app.store().resources::<S>().set_enabled(&identity.tenant, found.id, enabled).await?;
    S::announce(app).await?;
    Ok(changed)
}

/// Deletes a resource, which can be restored for 48 hours. One that is in use is deleted only with `force`.
pub async fn delete<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    reference: &str,
    force: bool,
) -> Result<Resource<S>, ServiceError> {
    identity.require(Role::Editor)?;
    let found = find::<S>(app, identity, reference).await?;
    note(identity, ResourceAction::Deleted, &*found.definition);
    // The store rejects the deletion of a resource that a file defines, even with `force`.
    if !force && found.path.is_none() {
        require_unused(app, &found).await?;
    }
    app.store().resources::<S>().delete(&identity.tenant, found.id).await?;
    S::announce(app).await?;
    Ok(found)
}

/// Restores a deleted resource with its revisions, as it was.
pub async fn undelete<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    reference: &str,
) -> Result<Resource<S>, ServiceError> {
    identity.require(Role::Editor)?;
    audit::note(identity, &format!("{}.undelete", S::KIND.as_str()), &excerpt(reference, 120));
    let restored = app.store().resources::<S>().undelete(&identity.tenant, reference).await?;
    S::announce(app).await?;
    Ok(restored)
}

/// Finds a revision of a resource by its number. `noun` is the word for a revision in the error.
pub async fn revision<S: ServedKind>(
    app: &Context,
    found: &Resource<S>,
    noun: &str,
    number: &str,
) -> Result<ResourceRevision<S>, ServiceError> {
    let missing = || ServiceError::not_found(noun, number);
    let parsed = number.parse().ok().filter(|number: &u32| *number > 0).ok_or_else(missing)?;
    let resources = app.store().resources::<S>();
    resources.revision(&found.tenant, found.id, parsed).await?.ok_or_else(missing)
}

/// Restores an earlier definition as the newest one. The slug stays: it belongs to the resource, not to the revision.
/// Returns the resource with the warnings about the definition.
pub async fn restore<S: ServedKind>(
    app: &Context,
    identity: &Identity,
    found: &Resource<S>,
    definition: &S,
) -> Result<(Resource<S>, Vec<Problem>), ServiceError> {
    identity.require(Role::Editor)?;
    audit::note(identity, &format!("{}.restore", S::KIND.as_str()), found.definition.slug());
    let warnings = S::check_saved(app, identity, definition).await?;
    let mut definition = definition.clone();
    definition.set_slug(&found.definition);
    Ok((replace(app, identity, found, definition, Some(found.revision)).await?, warnings))
}

/// Two revisions, and the fields in which they differ.
pub struct Difference {
    pub from: u32,
    pub to: u32,
    pub changes: Vec<FieldChange>,
}

/// Compares two revisions of a resource. Without numbers, the newest one is compared with the published one, or with the
/// one before it.
pub async fn diff<S: ServedKind>(
    app: &Context,
    found: &Resource<S>,
    from: Option<&str>,
    to: Option<&str>,
) -> Result<Difference, ServiceError> {
    let previous = found.revision.saturating_sub(1).max(1);
    let base = found.published_revision().filter(|number| *number != found.revision).unwrap_or(previous);
    let from =
        revision(app, found, "revision", &from.map_or_else(|| base.to_string(), str::to_owned)).await?;
    let newest = found.revision.to_string();
    let to = revision(app, found, "revision", to.unwrap_or(&newest)).await?;
    // A definition always serialises.
    let value =
        |revision: &ResourceRevision<S>| serde_json::to_value(&*revision.definition).unwrap_or_default();
    let mut changes = Vec::new();
    compare("", &value(&from), &value(&to), &mut changes);
    Ok(Difference { from: from.number, to: to.number, changes })
}
