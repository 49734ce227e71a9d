//! Plans code artifacts: a change appends a version.

use haft_core::artifact::{ArtifactContent, ArtifactDefinition, CodeArtifact};
use haft_core::hash;
use haft_core::id::ArtifactId;
use haft_core::problem::Problem;
use haft_core::tool::Status;
use haft_store::{ResourceChange, ResourceHead};
use serde_json::Value;

use super::desired::in_file;
use super::documents::DesiredArtifact;
use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::{Planner, problems_of, target_status};
use crate::artifacts::check_source;

type ArtifactHead = ResourceHead<ArtifactId>;

impl Planner<'_> {
    /// Plans the artifacts of the folder.
    pub(super) async fn artifacts(&mut self, artifacts: Vec<DesiredArtifact>) {
        let state = self.state;
        for stored in &state.artifacts {
            if !artifacts.iter().any(|desired| desired.slug.as_str() == stored.slug) {
                self.unmanaged_artifact(stored);
            }
        }
        for desired in artifacts {
            let stored = state.artifacts.iter().find(|stored| stored.slug == desired.slug.as_str());
            self.artifact(desired, stored).await;
        }
    }

    fn unmanaged_artifact(&mut self, stored: &ArtifactHead) {
        let slug = stored.slug.as_str();
        let mut change = PlannedChange::new(ChangeKind::CodeArtifact, ChangeAction::Unmanaged, slug);
        // One that a file of the home folder defines is removed by that file only.
        if self.options.prune && stored.path.is_none() {
            change.action = ChangeAction::Delete;
            self.references.add_artifact(slug, None);
            self.references.add_artifact(&stored.id, None);
            self.changes.artifacts.push(ResourceChange::Delete { id: stored.id });
        }
        self.planned.push(change);
    }

    async fn artifact(&mut self, desired: DesiredArtifact, stored: Option<&ArtifactHead>) {
        let DesiredArtifact { file, slug, content, status } = desired;
        let status = target_status(status, stored.map(|stored| stored.status));
        let mut change = PlannedChange::new(ChangeKind::CodeArtifact, ChangeAction::Create, slug.as_str());
        change.file = Some(file.clone());
        let Some(head) = stored else {
            self.references.add_artifact(&slug, Some(1));
            self.check_artifact(&file, &content).await;
            change.summary.clone_from(&content.description);
            self.planned.push(change);
            let definition = Box::new(ArtifactDefinition { slug, content: content.into() });
            return self.changes.artifacts.push(ResourceChange::Create { definition, enabled: true, status });
        };
        let definition = ArtifactDefinition { slug, content: content.into() };
        let (slug, content) = (&definition.slug, &definition.content);
        let earlier = match self.changed_artifact(head, &definition).await {
            Ok(earlier) => earlier,
            Err(problem) => return self.problems.push(in_file(&file, &problem)),
        };
        let newest = head.revision.saturating_add(u32::from(earlier.is_some()));
        self.references.add_artifact(slug, Some(newest));
        self.references.add_artifact(&head.id, Some(newest));
        let is_changed = earlier.is_some();
        if let Some(earlier) = earlier {
            self.check_artifact(&file, content).await;
            change.action = ChangeAction::Update;
            change.fields = fields(&as_json(&earlier.definition.content), &as_json(content));
            change.fields.push(field("version", head.revision, newest));
        } else {
            change.action = ChangeAction::Unchanged;
        }
        let is_published = head.published_revision == Some(head.revision);
        if head.status != status {
            change.fields.push(field("status", head.status.as_str(), status.as_str()));
        } else if status == Status::Published && !is_published && !is_changed {
            change.fields.push(field("published_revision", head.published_revision, head.revision));
        }
        if !is_changed && !change.fields.is_empty() {
            let is_publication = status == Status::Published;
            change.action = if is_publication { ChangeAction::Publish } else { ChangeAction::Update };
        }
        let is_unchanged = change.action == ChangeAction::Unchanged;
        self.planned.push(change);
        if is_unchanged {
            return;
        }
        let (id, enabled, definition) = (head.id, head.enabled, Box::new(definition));
        self.changes.artifacts.push(ResourceChange::Update { id, definition, enabled, status });
    }

    /// Returns the stored artifact if its content differs. The state has only hashes, because sources can be large.
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

    async fn check_artifact(&mut self, file: &str, content: &ArtifactContent) {
        if let Err(error) = check_source(self.app, content).await {
            self.problems.extend(problems_of(&error).iter().map(|problem| in_file(file, problem)));
        }
    }
}

fn as_json(content: &ArtifactContent) -> Value {
    serde_json::to_value(content).unwrap_or_default()
}
