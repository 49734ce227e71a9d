//! Plans retrieval pipelines. Their documents are data: a folder has none, and only a deletion loses them.

use haft_core::problem::Problem;
use haft_core::retrieval::{Pipeline, PipelineDefinition};
use haft_core::secret::{ExternalReference, MASK};
use haft_store::PipelineChange;
use serde_json::Value;

use super::desired_resource::DesiredResource;
use super::export_references::hide_secrets;
use super::model_url::hide_in_url;
use super::plan::{ChangeKind, field};
use super::plan_resources::{PlannedKind, counterpart};
use super::planner::{Planner, target_status};
use crate::field_changes::FieldChange;

type DesiredPipeline = DesiredResource<PipelineDefinition>;

impl PlannedKind for PipelineDefinition {
    const CHANGE: ChangeKind = ChangeKind::Pipeline;

    fn shown(&self) -> Value {
        let mut shown = self.clone();
        hide_secrets(&mut shown);
        serde_json::to_value(shown).unwrap_or_default()
    }

    fn more_fields(_revision: u32, changes: &[FieldChange]) -> Option<FieldChange> {
        // Only a masked secret differs.
        changes.is_empty().then(|| field("embedding.base_url", MASK, MASK))
    }
}

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
        let is_pruned = self.unmanaged::<PipelineDefinition>(slug, stored.path.as_deref());
        if stored.documents > 0
            && let Some(change) = self.planned.last_mut()
        {
            change.summary = format!("with {}", documents(stored.documents));
            change.fields.extend(is_pruned.then(|| field("documents", stored.documents, 0)));
        }
        if is_pruned {
            self.references.add_pipeline(slug, None);
            self.references.add_pipeline(&stored.id, None);
            let (id, documents) = (stored.id, stored.documents);
            self.changes.pipelines.push(PipelineChange::Delete { id, documents });
        }
    }

    async fn pipeline(&mut self, mut desired: DesiredPipeline, stored: Option<&Pipeline>) {
        let status = target_status(desired.status, stored.map(|stored| stored.status));
        if let Some(stored) = stored {
            restore_address(&mut desired.definition, &stored.definition);
            self.references.add_pipeline(&stored.id, Some(status));
        }
        self.references.add_pipeline(&desired.definition.slug, Some(status));
        if stored.is_none_or(|stored| *stored.definition != desired.definition) {
            self.warn_of_pipeline(&desired.file, &desired.definition, stored).await;
        }
        let stored = stored.map(|stored| counterpart(stored, &desired.definition));
        let change = self.resource(desired, stored);
        self.changes.pipelines.extend(change.map(PipelineChange::Definition));
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
                && let Some(missing) = self.app.secrets().missing(tenant, name).await.unwrap_or_default()
            {
                let message = match ExternalReference::parse(name) {
                    Some(_) => missing,
                    None => {
                        format!("credential `{name}` is not stored; store it with `haft secret set {name}`")
                    }
                };
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

fn documents(count: u64) -> String {
    format!("{count} document{}", if count == 1 { "" } else { "s" })
}
