//! Retrieval pipelines as a kind of resource.

use haft_core::callable::CallableKind;
use haft_core::catalog::StoreError;
use haft_core::implementation::Implementation;
use haft_core::problem::Problem;
use haft_core::retrieval::PipelineDefinition;

use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::resource_kind::ServedKind;

impl ServedKind for PipelineDefinition {
    const CALLABLE: Option<CallableKind> = Some(CallableKind::Pipeline);

    fn references(implementation: &Implementation) -> Vec<(&'static str, &str)> {
        let Implementation::RagRetrieval(query) = implementation else { return Vec::new() };
        vec![("implementation.pipeline_id", &query.pipeline_id)]
    }

    async fn check_saved(
        _app: &Context,
        _identity: &Identity,
        definition: &Self,
    ) -> Result<Vec<Problem>, ServiceError> {
        match definition.check() {
            problems if problems.is_empty() => Ok(Vec::new()),
            problems => Err(ServiceError::invalid_definition(&problems)),
        }
    }

    async fn announce(app: &Context) -> Result<(), StoreError> {
        app.retrieval().refresh_names().await?;
        app.retrieval().ingest();
        Ok(())
    }
}
