//! Plans code artifacts: a change appends a version.

use haft_core::artifact::{ArtifactContent, CodeArtifact};
use haft_core::hash;
use haft_core::problem::Problem;
use haft_store::{ArtifactChange, ArtifactHead, NewArtifact};
use serde_json::Value;

use super::desired::in_file;
use super::documents::DesiredArtifact;
use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::{Planner, problems_of};
use crate::artifacts::check_source;

impl Planner<'_> {
    /// Plans the artifacts of the folder.
    pub(super) async fn artifacts(&mut self, artifacts: Vec<DesiredArtifact>) {
        let state = self.state;
        for stored in &state.artifacts {
            if !artifacts.iter().any(|desired| desired.slug == stored.slug) {
                self.unmanaged_artifact(stored);
            }
        }
        for desired in artifacts {
            let stored = state.artifacts.iter().find(|stored| stored.slug == desired.slug);
            self.artifact(desired, stored).await;
        }
    }

    fn unmanaged_artifact(&mut self, stored: &ArtifactHead) {
        let slug = stored.slug.as_str();
        let mut change = PlannedChange::new(ChangeKind::CodeArtifact, ChangeAction::Unmanaged, slug);
        if self.options.prune {
            change.action = ChangeAction::Delete;
            self.references.add_artifact(slug, None);
            self.references.add_artifact(&stored.id, None);
            self.changes.artifacts.push(ArtifactChange::Delete { id: stored.id });
        }
        self.planned.push(change);
    }

    async fn artifact(&mut self, desired: DesiredArtifact, stored: Option<&ArtifactHead>) {
        let DesiredArtifact { file, slug, content } = desired;
        let mut change = PlannedChange::new(ChangeKind::CodeArtifact, ChangeAction::Create, slug.as_str());
        change.file = Some(file.clone());
        let Some(head) = stored else {
            self.references.add_artifact(&slug, Some(1));
            self.check_artifact(&file, &content).await;
            change.summary.clone_from(&content.description);
            self.planned.push(change);
            return self.changes.artifacts.push(ArtifactChange::Create(NewArtifact { slug, content }));
        };
        let earlier = match self.changed_artifact(head, &content).await {
            Ok(earlier) => earlier,
            Err(problem) => return self.problems.push(in_file(&file, &problem)),
        };
        let newest = head.version.saturating_add(u32::from(earlier.is_some()));
        self.references.add_artifact(&slug, Some(newest));
        self.references.add_artifact(&head.id, Some(newest));
        let Some(earlier) = earlier else {
            change.action = ChangeAction::Unchanged;
            return self.planned.push(change);
        };
        self.check_artifact(&file, &content).await;
        change.action = ChangeAction::Update;
        change.fields = fields(&as_json(&earlier.newest.content), &as_json(&content));
        change.fields.push(field("version", head.version, newest));
        self.planned.push(change);
        let new = NewArtifact { slug, content };
        self.changes.artifacts.push(ArtifactChange::Update { id: head.id, new });
    }

    /// Returns the stored artifact if its content differs. The state has only hashes, because sources can be large.
    async fn changed_artifact(
        &self,
        head: &ArtifactHead,
        content: &ArtifactContent,
    ) -> Result<Option<CodeArtifact>, Problem> {
        if hash::of_value(content).is_ok_and(|hash| hash == head.hash) {
            return Ok(None);
        }
        let found = self.app.store().artifact(&self.identity.tenant, &head.id.to_string()).await;
        let found = found.map_err(|error| Problem::new("", "not_checked", error.to_string()))?;
        let Some(stored) = found else {
            return Err(Problem::new("", "conflict", "the artifact was deleted meanwhile; make a new plan"));
        };
        Ok(Some(stored).filter(|stored| *stored.newest.content != *content))
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
