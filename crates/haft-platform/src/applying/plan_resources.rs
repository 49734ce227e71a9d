//! The parts of plans that agents, pipelines and code artifacts share: which ones are created, changed, published or
//! deleted. The module of each kind adds its checks and the references that are valid after the plan.

use haft_core::problem::Problem;
use haft_core::resource::{Resource, ResourceSpec};
use haft_core::tool::Status;
use haft_store::{ResourceChange, ResourceHead, StoredKind};
use serde_json::Value;

use super::desired_resource::DesiredResource;
use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::{Planner, target_status};
use crate::field_changes::FieldChange;

/// A kind of resource in plans.
pub(super) trait PlannedKind: StoredKind {
    /// The kind of its changes.
    const CHANGE: ChangeKind;

    /// Returns the definition for display in a plan, without secrets.
    fn shown(&self) -> Value;

    /// Returns an additional changed field that a comparison of [`PlannedKind::shown`] cannot find.
    fn more_fields(_revision: u32, _changes: &[FieldChange]) -> Option<FieldChange> {
        None
    }
}

/// A stored resource that is also in the folder.
pub(super) struct Counterpart<'a, S: ResourceSpec> {
    pub(super) head: ResourceHead<S::Id>,
    /// Its definition, if it differs from the one in the folder.
    pub(super) earlier: Option<&'a S>,
}

/// Returns a resource without its definition.
pub(super) fn head_of<S: ResourceSpec>(resource: &Resource<S>) -> ResourceHead<S::Id> {
    ResourceHead {
        id: resource.id,
        slug: resource.definition.slug().to_owned(),
        revision: resource.revision,
        hash: resource.hash.clone(),
        published_revision: resource.published_revision(),
        status: resource.status,
        enabled: resource.enabled,
        path: resource.path.clone(),
    }
}

/// Returns a stored resource, with its definition if it differs.
pub(super) fn counterpart<'a, S: ResourceSpec>(
    stored: &'a Resource<S>,
    definition: &S,
) -> Counterpart<'a, S> {
    let earlier = Some(&*stored.definition).filter(|earlier| *earlier != definition);
    Counterpart { head: head_of(stored), earlier }
}

impl Planner<'_> {
    /// Plans a resource of the folder. Returns the change for the store.
    pub(super) fn resource<S: PlannedKind>(
        &mut self,
        desired: DesiredResource<S>,
        stored: Option<Counterpart<'_, S>>,
    ) -> Option<ResourceChange<S>> {
        let DesiredResource { file, definition, enabled, status } = desired;
        let status = target_status(status, stored.as_ref().map(|stored| stored.head.status));
        let Some(Counterpart { head, earlier }) = stored else {
            let mut change = PlannedChange::new(S::CHANGE, ChangeAction::Create, definition.slug());
            definition.description().clone_into(&mut change.summary);
            change.file = Some(file);
            self.planned.push(change);
            let (definition, enabled) = (Box::new(definition), enabled.unwrap_or(true));
            return Some(ResourceChange::Create { definition, enabled, status });
        };
        if let Some(path) = head.path.as_ref().filter(|_| earlier.is_some()) {
            let message = format!(
                "the {} `{}` is defined by the file `{path}` of the home folder; edit or remove that file",
                S::KIND,
                head.slug
            );
            self.problems.push(Problem::new(file, "defined_by_file", message));
            return None;
        }
        // A resource with the status `disabled` is enabled by any other status.
        let enabled = enabled.unwrap_or(head.enabled || head.status == Status::Disabled);
        let mut change = updated(&head, earlier, &definition, (enabled, status));
        change.file = Some(file);
        let is_change = change.action.is_change();
        self.planned.push(change);
        let (id, definition) = (head.id, Box::new(definition));
        is_change.then_some(ResourceChange::Update { id, definition, enabled, status })
    }

    /// Plans a stored resource that the folder does not have; returns whether it is deleted. One that a file of the home
    /// folder defines is not: only that file removes it.
    pub(super) fn unmanaged<S: PlannedKind>(&mut self, slug: &str, path: Option<&str>) -> bool {
        let is_pruned = self.options.prune && path.is_none();
        let action = if is_pruned { ChangeAction::Delete } else { ChangeAction::Unmanaged };
        self.planned.push(PlannedChange::new(S::CHANGE, action, slug));
        is_pruned
    }
}

/// Returns the change of a stored resource.
fn updated<S: PlannedKind>(
    head: &ResourceHead<S::Id>,
    earlier: Option<&S>,
    definition: &S,
    (enabled, status): (bool, Status),
) -> PlannedChange {
    let mut change = PlannedChange::new(S::CHANGE, ChangeAction::Unchanged, head.slug.as_str());
    if let Some(earlier) = earlier {
        change.action = ChangeAction::Update;
        change.fields = fields(&earlier.shown(), &definition.shown());
        change.fields.extend(S::more_fields(head.revision, &change.fields));
    }
    let enabled = enabled && status != Status::Disabled;
    if head.enabled != enabled {
        change.action = ChangeAction::Update;
        change.fields.push(field("enabled", head.enabled, enabled));
    }
    let is_unpublished = status == Status::Published && head.published_revision != Some(head.revision);
    if head.status != status {
        change.fields.push(field("status", head.status.as_str(), status.as_str()));
    } else if is_unpublished && change.action == ChangeAction::Unchanged {
        change.fields.push(field("published_revision", head.published_revision, head.revision));
    }
    if change.action == ChangeAction::Unchanged && !change.fields.is_empty() {
        let is_publication = status == Status::Published;
        change.action = if is_publication { ChangeAction::Publish } else { ChangeAction::Update };
    }
    change
}
