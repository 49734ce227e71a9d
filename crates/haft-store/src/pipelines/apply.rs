//! Pipelines as part of one change of many things.

use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::name::TenantId;
use haft_core::retrieval::{Pipeline, PipelineDefinition};

use super::api::pipelines_in;
use crate::engine::failed_to;
use crate::resources::ResourceChange;
use crate::session::Session;

const APPLY: &str = "apply the pipelines";

/// One change of a pipeline.
#[derive(Debug, Clone)]
pub enum PipelineChange {
    /// A change of its definition.
    Definition(ResourceChange<PipelineDefinition>),
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
        author: &str,
    ) -> Result<(), StoreError> {
        let change = match change {
            PipelineChange::Definition(change) => change,
            PipelineChange::Delete { id, documents } => {
                let found = self.pipelines_of(tenant).await.map_err(failed_to(APPLY))?;
                let found = found.into_iter().find(|pipeline| pipeline.id == id);
                let found = found.ok_or_else(|| StoreError::not_found("pipeline", id))?;
                if found.documents != documents {
                    return Err(StoreError::Conflict(format!(
                        "pipeline `{}` had {documents} documents when the plan was made and has {} now; nothing was \
                         applied: make a new plan",
                        found.definition.slug, found.documents
                    )));
                }
                ResourceChange::Delete { id }
            }
        };
        self.apply_resource(tenant, change, author).await
    }
}
