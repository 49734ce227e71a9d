//! Pipelines as part of one change of many things.

use haft_core::catalog::StoreError;
use haft_core::id::PipelineId;
use haft_core::name::TenantId;
use haft_core::retrieval::PipelineDefinition;
use sqlx::{Any, Transaction};

use super::api::pipelines_in;
use crate::engine::failed_to;
use crate::resources::ResourceChange;

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

impl PipelineChange {
    /// Returns the change of the resource. A pipeline that is deleted must have the documents of the plan.
    pub(crate) async fn checked(
        self,
        tx: &mut Transaction<'static, Any>,
        tenant: &TenantId,
    ) -> Result<ResourceChange<PipelineDefinition>, StoreError> {
        let (id, documents) = match self {
            PipelineChange::Definition(change) => return Ok(change),
            PipelineChange::Delete { id, documents } => (id, documents),
        };
        let found = pipelines_in(tx, tenant).await.map_err(failed_to(APPLY))?;
        let found = found.into_iter().find(|pipeline| pipeline.id == id);
        let found = found.ok_or_else(|| StoreError::not_found("pipeline", id))?;
        if found.documents != documents {
            return Err(StoreError::Conflict(format!(
                "pipeline `{}` had {documents} documents when the plan was made and has {} now; nothing was \
                 applied: make a new plan",
                found.definition.slug, found.documents
            )));
        }
        Ok(ResourceChange::Delete { id })
    }
}
