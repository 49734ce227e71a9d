//! Plans retrieval pipelines. Their documents are data: a folder has none, and only a deletion loses them.

use haft_core::problem::Problem;
use haft_core::retrieval::{Pipeline, PipelineDefinition};
use haft_core::secret::MASK;
use haft_core::tool::Status;
use haft_store::{PipelineChange, ResourceChange};
use serde_json::Value;

use super::documents::DesiredPipeline;
use super::export_agents::hide_in_url;
use super::export_references::hide_secrets;
use super::plan::{ChangeAction, ChangeKind, PlannedChange, field, fields};
use super::planner::Planner;

impl Planner<'_> {
    /// Plans the pipelines of the folder.
    pub(super) async fn pipelines(&mut self, pipelines: Vec<DesiredPipeline>) {
        let state = self.state;
        for stored in &state.pipelines {
            if !pipelines.iter().any(|desired| desired.definition.slug == stored.definition.slug) {
                self.unmanaged_pipeline(stored);
            }
        }
        for desired in pipelines {
            let slug = &desired.definition.slug;
            let stored = state.pipelines.iter().find(|stored| stored.definition.slug == *slug);
            self.pipeline(desired, stored).await;
        }
    }

    fn unmanaged_pipeline(&mut self, stored: &Pipeline) {
        let slug = stored.definition.slug.as_str();
        let mut change = PlannedChange::new(ChangeKind::Pipeline, ChangeAction::Unmanaged, slug);
        if stored.documents > 0 {
            change.summary = format!("with {}", documents(stored.documents));
        }
        // One that a file of the home folder defines is removed by that file only.
        if self.options.prune && stored.path.is_none() {
            change.action = ChangeAction::Delete;
            if stored.documents > 0 {
                change.fields.push(field("documents", stored.documents, 0));
            }
            self.references.add_pipeline(slug, None);
            self.references.add_pipeline(&stored.id, None);
            let (id, documents) = (stored.id, stored.documents);
            self.changes.pipelines.push(PipelineChange::Delete { id, documents });
        }
        self.planned.push(change);
    }

    async fn pipeline(&mut self, desired: DesiredPipeline, stored: Option<&Pipeline>) {
        let DesiredPipeline { file, mut definition, status } = desired;
        let status = status.unwrap_or(Status::Published);
        if let Some(stored) = stored {
            restore_address(&mut definition, &stored.definition);
            self.references.add_pipeline(&stored.id, Some(status));
        }
        self.references.add_pipeline(&definition.slug, Some(status));
        if stored.is_none_or(|stored| *stored.definition != definition) {
            self.warn_of_pipeline(&file, &definition, stored).await;
        }
        let Some(stored) = stored else {
            let slug = definition.slug.as_str();
            let mut change = PlannedChange::new(ChangeKind::Pipeline, ChangeAction::Create, slug);
            change.summary.clone_from(&definition.description);
            change.file = Some(file);
            self.planned.push(change);
            let definition = Box::new(definition);
            let created = ResourceChange::Create { definition, enabled: true, status };
            return self.changes.pipelines.push(PipelineChange::Definition(created));
        };
        let mut change = updated(stored, &definition, status);
        change.file = Some(file);
        if change.action.is_change() {
            let (id, definition) = (stored.id, Box::new(definition));
            let enabled = stored.enabled || stored.status == Status::Disabled;
            let updated = ResourceChange::Update { id, definition, enabled, status };
            self.changes.pipelines.push(PipelineChange::Definition(updated));
        }
        self.planned.push(change);
    }

    /// Warns of what the pipeline lacks on this installation, and of documents that are read again.
    async fn warn_of_pipeline(
        &mut self,
        file: &str,
        definition: &PipelineDefinition,
        stored: Option<&Pipeline>,
    ) {
        let mut warn = |code: &str, message: String| self.warnings.push(Problem::new(file, code, message));
        if let Some(embedding) = &definition.embedding {
            if embedding.base_url.contains("${") {
                let message = "`embedding.base_url` has a reference instead of a secret; enter the secret, or use `credential`";
                warn("secret_reference", message.to_owned());
            }
            let tenant = &self.identity.tenant;
            if let Some(name) = &embedding.credential
                // If the store is unavailable, do not warn.
                && !self.app.has_secret(tenant, name).await.unwrap_or(true)
            {
                let message =
                    format!("credential `{name}` is not stored; store it with `haft secret set {name}`");
                warn("missing_credential", message);
            }
        }
        let Some(stored) = stored.filter(|stored| stored.documents > 0) else { return };
        let (old, count) = (stored.serving(), documents(stored.documents));
        if old.embedding != definition.embedding {
            warn("documents_read_again", format!("{count} will be read and embedded again"));
        } else if old.chunking != definition.chunking || old.language != definition.language {
            warn("documents_read_again", format!("{count} will be read again"));
        }
    }
}

/// Takes the stored address if the folder has it as an export writes it: with references instead of secrets.
fn restore_address(definition: &mut PipelineDefinition, stored: &PipelineDefinition) {
    if let (Some(written), Some(stored)) = (&mut definition.embedding, &stored.embedding)
        && hide_in_url(&stored.base_url).is_some_and(|hidden| hidden == written.base_url)
    {
        written.base_url.clone_from(&stored.base_url);
    }
}

/// Returns the change of a stored pipeline.
fn updated(stored: &Pipeline, definition: &PipelineDefinition, status: Status) -> PlannedChange {
    let slug = definition.slug.as_str();
    let mut change = PlannedChange::new(ChangeKind::Pipeline, ChangeAction::Unchanged, slug);
    if *stored.definition != *definition {
        change.action = ChangeAction::Update;
        change.fields = fields(&as_json(&stored.definition), &as_json(definition));
        if change.fields.is_empty() {
            // Only a secret differs.
            change.fields.push(field("embedding.base_url", MASK, MASK));
        }
    }
    let published = stored.published_revision();
    let is_unpublished = status == Status::Published && published != Some(stored.revision);
    if stored.status != status {
        change.fields.push(field("status", stored.status.as_str(), status.as_str()));
    } else if is_unpublished && change.action == ChangeAction::Unchanged {
        change.fields.push(field("published_revision", published, stored.revision));
    }
    if stored.status != status || is_unpublished {
        let is_publication = change.action == ChangeAction::Unchanged && status == Status::Published;
        change.action = if is_publication { ChangeAction::Publish } else { ChangeAction::Update };
    }
    change
}

fn as_json(definition: &PipelineDefinition) -> Value {
    let mut shown = definition.clone();
    hide_secrets(&mut shown);
    serde_json::to_value(shown).unwrap_or_default()
}

fn documents(count: u64) -> String {
    format!("{count} document{}", if count == 1 { "" } else { "s" })
}
