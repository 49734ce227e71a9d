//! Pipelines as part of one change of many things.

use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::live::{ObjectEvent, PipelineAction};
use haft_core::name::TenantId;
use haft_core::retrieval::{Pipeline, PipelineDefinition, PipelineStatus};

use super::api::{delete_in, event_of, find_in, pipelines_in, set_status_in};
use crate::engine::failed_to;
use crate::session::Session;
use crate::watch::reports::many_documents;

const APPLY: &str = "apply the pipelines";

/// One change of a pipeline.
#[derive(Debug, Clone)]
pub enum PipelineChange {
    /// A new pipeline.
    Create {
        /// The definition.
        definition: Box<PipelineDefinition>,
        /// Its status.
        status: PipelineStatus,
    },
    /// A changed pipeline; its slug stays.
    Update {
        /// The pipeline.
        id: PipelineId,
        /// The definition.
        definition: Box<PipelineDefinition>,
        /// Its status.
        status: PipelineStatus,
    },
    /// A pipeline to delete with its documents.
    Delete {
        /// The pipeline.
        id: PipelineId,
        /// How many documents it had in the plan. If it has others now, that is a conflict.
        documents: u64,
    },
}

impl Session<'_> {
    /// Returns the pipelines of a tenant, by slug.
    pub(crate) async fn pipelines_of(&mut self, tenant: &TenantId) -> Result<Vec<Pipeline>, sqlx::Error> {
        pipelines_in(&mut self.tx, tenant).await
    }

    /// Applies one change of a pipeline.
    pub(crate) async fn apply_pipeline(
        &mut self,
        tenant: &TenantId,
        change: PipelineChange,
    ) -> Result<(), StoreError> {
        self.touch_references();
        let (inner, tx) = (self.inner, &mut self.tx);
        let (pipeline, action) = match change {
            PipelineChange::Create { definition, status } => {
                let created = inner.create_pipeline_in(tx, tenant, *definition, status).await?;
                (created, PipelineAction::Created)
            }
            PipelineChange::Update { id, definition, status } => {
                let earlier = find_in(tx, tenant, id).await?;
                if *earlier.definition != *definition {
                    inner.change_pipeline_in(tx, &earlier, &definition).await?;
                }
                set_status_in(tx, tenant, id, status).await.map_err(failed_to(APPLY))?;
                let changed = find_in(tx, tenant, id).await?;
                if changed.revision != earlier.revision {
                    self.report_later(tenant, ObjectEvent::Document(many_documents(id)));
                }
                (changed, PipelineAction::Updated)
            }
            PipelineChange::Delete { id, documents } => {
                let earlier = find_in(tx, tenant, id).await?;
                if earlier.documents != documents {
                    return Err(StoreError::Conflict(format!(
                        "pipeline `{}` had {documents} documents when the plan was made and has {} now; nothing was \
                         applied: make a new plan",
                        earlier.definition.slug, earlier.documents
                    )));
                }
                delete_in(tx, tenant, id).await.map_err(failed_to(APPLY))?;
                (earlier, PipelineAction::Deleted)
            }
        };
        self.report_later(tenant, event_of(&pipeline, action));
        Ok(())
    }
}
