//! Operations that are the same for every kind of resource: find, create, change, publish, deprecate, enable, restore,
//! delete. What a kind adds is in its implementation of [`ServedKind`] and in its own module.

use haft_core::agent::AgentDefinition;
use haft_core::artifact::ArtifactDefinition;
use haft_core::catalog::StoreError;
use haft_core::live::ResourceAction;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::resource::{Resource, ResourceRevision};
use haft_core::retrieval::PipelineDefinition;
use haft_core::token::Role;
use haft_core::tool::Status;
use haft_store::{ResourceUpdate, StoredKind};

use crate::audit;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;
use crate::tools::{FieldChange, compare};

/// A kind of resource that the server has.
pub trait ServedKind: StoredKind {
    /// Returns whether a caller may see a resource.
    fn is_visible(_identity: &Identity, _resource: &Resource<Self>) -> bool {
        true
    }

    /// Makes a change known on this node at once.
    fn announce(app: &Installation) -> impl Future<Output = Result<(), StoreError>> + Send;
}

impl ServedKind for AgentDefinition {
    async fn announce(app: &Installation) -> Result<(), StoreError> {
        app.runs().agents().refresh_names().await
    }
}

impl ServedKind for PipelineDefinition {
    /// Whoever may not query it does not read its documents either; editors see what they may change.
    fn is_visible(identity: &Identity, pipeline: &Resource<Self>) -> bool {
        identity.role >= Role::Editor || identity.allows_pipeline(&pipeline.definition.slug)
    }

    async fn announce(app: &Installation) -> Result<(), StoreError> {
        app.retrieval().refresh_names().await?;
        app.retrieval().ingest();
        Ok(())
    }
}

impl ServedKind for ArtifactDefinition {
    async fn announce(app: &Installation) -> Result<(), StoreError> {
        app.artifacts().refresh_names().await
    }
}

/// Finds a resource of the caller's tenant by its id or slug.
pub async fn find<S: ServedKind>(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Resource<S>, ServiceError> {
    let found = app.store().resources::<S>().find(&identity.tenant, reference).await?;
    let found = found.filter(|resource| S::is_visible(identity, resource));
    found.ok_or_else(|| ServiceError::not_found(S::KIND.noun(), reference))
}

/// Notes a change of a resource for the audit log.
pub fn note<S: ServedKind>(identity: &Identity, change: ResourceAction, definition: &S) {
    audit::note(identity, S::KIND.audit_action(change), definition.slug());
}

/// Creates a resource, as a draft.
pub async fn create<S: ServedKind>(
    app: &Installation,
    identity: &Identity,
    definition: S,
) -> Result<Resource<S>, ServiceError> {
    let created = app.store().resources().create(&identity.tenant, definition, &identity.name).await?;
    S::announce(app).await?;
    Ok(created)
}

/// Replaces the definition of a resource: a new revision.
pub async fn update<S: ServedKind>(
    app: &Installation,
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

/// Publishes the newest revision of a resource, unless it has changed meanwhile.
pub async fn publish<S: ServedKind>(
    app: &Installation,
    identity: &Identity,
    found: &Resource<S>,
) -> Result<Resource<S>, ServiceError> {
    identity.require(Role::Editor)?;
    note(identity, ResourceAction::Published, &*found.definition);
    let resources = app.store().resources::<S>();
    let published = resources.publish(&identity.tenant, found.id, Some(found.revision)).await?;
    S::announce(app).await?;
    Ok(published)
}

/// Deprecates a resource: it still works.
pub async fn deprecate<S: ServedKind>(
    app: &Installation,
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
    app: &Installation,
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

/// Deletes a resource with its revisions.
pub async fn delete<S: ServedKind>(
    app: &Installation,
    identity: &Identity,
    found: &Resource<S>,
) -> Result<(), ServiceError> {
    identity.require(Role::Editor)?;
    note(identity, ResourceAction::Deleted, &*found.definition);
    app.store().resources::<S>().delete(&identity.tenant, found.id).await?;
    S::announce(app).await?;
    Ok(())
}

/// Finds a revision of a resource by its number. `noun` is the word for a revision in the error.
pub async fn revision<S: ServedKind>(
    app: &Installation,
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
pub async fn restore<S: ServedKind>(
    app: &Installation,
    identity: &Identity,
    found: &Resource<S>,
    definition: &S,
) -> Result<Resource<S>, ServiceError> {
    identity.require(Role::Editor)?;
    audit::note(identity, &format!("{}.restore", S::KIND.as_str()), found.definition.slug());
    let mut definition = definition.clone();
    definition.set_slug(&found.definition);
    update(app, identity, found, definition, Some(found.revision)).await
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
    app: &Installation,
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

/// Rejects a resource that is disabled, or whose file is invalid.
pub fn require_in_service<S: StoredKind>(found: &Resource<S>) -> Result<(), CallError> {
    let (kind, slug) = (S::KIND, found.definition.slug());
    if found.is_disabled() {
        return Err(CallError::new(ErrorCode::Disabled, format!("{kind} `{slug}` is disabled")));
    }
    match &found.error {
        Some(error) => {
            Err(CallError::new(ErrorCode::NotReady, format!("{kind} `{slug}` is not ready: {error}")))
        }
        None => Ok(()),
    }
}
