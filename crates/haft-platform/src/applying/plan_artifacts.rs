//! Plans code artifacts: a change appends a version. The stored state contains only hashes, because sources can be large.

use haft_core::artifact::{ArtifactDefinition, CodeArtifact};
use haft_core::hash;
use haft_core::id::ArtifactId;
use haft_core::problem::Problem;
use haft_store::{ResourceChange, ResourceHead};
use serde_json::Value;

use super::desired::in_file;
use super::desired_resource::DesiredResource;
use super::plan::{ChangeKind, field};
use super::plan_resources::{Counterpart, PlannedKind};
use super::planner::Planner;
use crate::artifacts::check_source;
use crate::field_changes::FieldChange;

type ArtifactHead = ResourceHead<ArtifactId>;
type DesiredArtifact = DesiredResource<ArtifactDefinition>;

impl PlannedKind for ArtifactDefinition {
    const CHANGE: ChangeKind = ChangeKind::CodeArtifact;

    fn shown(&self) -> Value {
        serde_json::to_value(&*self.content).unwrap_or_default()
    }

    fn more_fields(revision: u32, _changes: &[FieldChange]) -> Option<FieldChange> {
        Some(field("version", revision, revision.saturating_add(1)))
    }
}

impl Planner<'_> {
    /// Plans the artifacts of the folder.
    pub(super) async fn artifacts(&mut self, artifacts: Vec<DesiredArtifact>) {
        let state = self.state;
        for stored in &state.artifacts {
            let is_desired = artifacts.iter().any(|desired| desired.definition.slug.as_str() == stored.slug);
            if !is_desired && self.unmanaged::<ArtifactDefinition>(&stored.slug, stored.path.as_deref()) {
                self.references.add_artifact(&stored.slug, None);
                self.references.add_artifact(&stored.id, None);
                self.changes.artifacts.push(ResourceChange::Delete { id: stored.id });
            }
        }
        for desired in artifacts {
            let slug = desired.definition.slug.as_str();
            let stored = state.artifacts.iter().find(|stored| stored.slug == slug);
            self.artifact(desired, stored).await;
        }
    }

    async fn artifact(&mut self, desired: DesiredArtifact, stored: Option<&ArtifactHead>) {
        let earlier = match stored {
            None => None,
            Some(head) => match self.changed_artifact(head, &desired.definition).await {
                Ok(earlier) => earlier,
                Err(problem) => return self.problems.push(in_file(&desired.file, &problem)),
            },
        };
        let is_new = stored.is_none() || earlier.is_some();
        let newest = stored.map_or(0, |head| head.revision).saturating_add(u32::from(is_new));
        self.references.add_artifact(&desired.definition.slug, Some(newest));
        if let Some(head) = stored {
            self.references.add_artifact(&head.id, Some(newest));
        }
        if is_new {
            self.check_artifact(&desired).await;
        }
        let earlier = earlier.as_ref().map(|artifact| &*artifact.definition);
        let stored = stored.map(|head| Counterpart { head: head.clone(), earlier });
        let change = self.resource(desired, stored);
        self.changes.artifacts.extend(change);
    }

    /// Returns the stored artifact if its content differs.
    async fn changed_artifact(
        &self,
        head: &ArtifactHead,
        definition: &ArtifactDefinition,
    ) -> Result<Option<CodeArtifact>, Problem> {
        if hash::of_value(definition).is_ok_and(|hash| hash == head.hash) {
            return Ok(None);
        }
        let found = self.app.store().artifacts().get(&self.identity.tenant, head.id).await;
        let found = found.map_err(|error| Problem::new("", "not_checked", error.to_string()))?;
        let Some(stored) = found else {
            return Err(Problem::new("", "conflict", "the artifact was deleted meanwhile; make a new plan"));
        };
        Ok(Some(stored).filter(|stored| *stored.definition != *definition))
    }

    async fn check_artifact(&mut self, desired: &DesiredArtifact) {
        if let Err(error) = check_source(self.app, &desired.definition.content).await {
            let problems = error.problems();
            self.problems.extend(problems.iter().map(|problem| in_file(&desired.file, problem)));
        }
    }
}
