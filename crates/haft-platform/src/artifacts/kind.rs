//! Code artifacts as a kind of resource.

use haft_core::artifact::ArtifactDefinition;
use haft_core::callable::CallableKind;
use haft_core::catalog::StoreError;
use haft_core::implementation::Implementation;
use haft_core::problem::Problem;

use super::manage::check_source;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::resource_kind::ServedKind;

impl ServedKind for ArtifactDefinition {
    const CALLABLE: Option<CallableKind> = None;

    fn references(implementation: &Implementation) -> Vec<(&'static str, &str)> {
        let Implementation::Artifact(used) = implementation else { return Vec::new() };
        used.artifact_id.as_deref().map(|id| ("implementation.artifact_id", id)).into_iter().collect()
    }

    async fn check_saved(
        app: &Context,
        _identity: &Identity,
        definition: &Self,
    ) -> Result<Vec<Problem>, ServiceError> {
        check_source(app, &definition.content).await.map(|()| Vec::new())
    }

    async fn announce(app: &Context) -> Result<(), StoreError> {
        app.artifacts().refresh_names().await
    }
}
