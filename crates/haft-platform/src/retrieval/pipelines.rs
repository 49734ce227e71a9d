//! Creating, changing and deleting retrieval pipelines.

use haft_core::outcome::ErrorCode;
use haft_core::retrieval::{ChunkHit, Pipeline, PipelineDefinition, PipelineStatus, RetrievalQuery};
use haft_core::token::Role;

use crate::audit;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;

/// Returns a pipeline of the caller's tenant.
pub async fn find(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Pipeline, ServiceError> {
    let found = app.store().pipeline(&identity.tenant, reference).await?;
    // Whoever may not query it does not read its documents either; editors see what they may change.
    let is_visible = |pipeline: &Pipeline| {
        identity.role >= Role::Editor || identity.allows_pipeline(&pipeline.definition.slug)
    };
    found.filter(is_visible).ok_or_else(|| ServiceError::not_found("pipeline", reference))
}

/// Creates a pipeline.
pub async fn create(
    app: &Installation,
    identity: &Identity,
    definition: PipelineDefinition,
) -> Result<Pipeline, ServiceError> {
    require_valid(&definition)?;
    audit::note(identity, "pipeline.create", definition.slug.as_str());
    let pipeline = app.store().create_pipeline(&identity.tenant, definition).await?;
    app.retrieval().refresh_names().await?;
    Ok(pipeline)
}

/// Replaces the definition of a pipeline. Documents that are cut or embedded differently are ingested again.
pub async fn update(
    app: &Installation,
    identity: &Identity,
    earlier: &Pipeline,
    definition: PipelineDefinition,
) -> Result<Pipeline, ServiceError> {
    require_valid(&definition)?;
    audit::note(identity, "pipeline.update", definition.slug.as_str());
    let changed = app.store().change_pipeline(&identity.tenant, earlier.id, definition).await?;
    app.retrieval().refresh_names().await?;
    app.retrieval().ingest();
    changed.ok_or_else(|| missing(earlier))
}

fn require_valid(definition: &PipelineDefinition) -> Result<(), ServiceError> {
    match definition.check() {
        problems if problems.is_empty() => Ok(()),
        problems => Err(ServiceError::invalid_definition(&problems)),
    }
}

fn missing(pipeline: &Pipeline) -> ServiceError {
    ServiceError::not_found("pipeline", pipeline.definition.slug.as_str())
}

/// Deletes a pipeline with its documents.
pub async fn delete(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Pipeline, ServiceError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.delete", pipeline.definition.slug.as_str());
    app.store().delete_pipeline(&identity.tenant, pipeline.id).await?;
    app.retrieval().refresh_names().await?;
    Ok(pipeline)
}

/// Publishes a pipeline: tools query it in production mode, too.
pub async fn publish(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Pipeline, ServiceError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.publish", pipeline.definition.slug.as_str());
    let status = PipelineStatus::Published;
    let published = app.store().set_pipeline_status(&identity.tenant, pipeline.id, status).await?;
    published.ok_or_else(|| missing(&pipeline))
}

/// Fetches and reads all documents of a pipeline again; returns how many.
pub async fn reingest(app: &Installation, identity: &Identity, reference: &str) -> Result<u64, ServiceError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.reingest", pipeline.definition.slug.as_str());
    let queued = app.store().reingest(&pipeline).await?;
    app.retrieval().ingest();
    Ok(queued)
}

/// Queries a pipeline.
pub async fn query(
    app: &Installation,
    identity: &Identity,
    reference: &str,
    query: RetrievalQuery,
) -> Result<Vec<ChunkHit>, ServiceError> {
    if !identity.tools.is_unlimited() {
        let pipeline = find(app, identity, reference).await?;
        let slug = &pipeline.definition.slug;
        if !identity.allows_pipeline(slug) {
            let message = format!(
                "the allow-list of the token does not contain pipeline `{slug}`; add `pipelines:{slug}`"
            );
            return Err(ServiceError::new(ErrorCode::Forbidden, message));
        }
    }
    let found = app.retrieval().query(&identity.tenant, reference, query).await;
    let found = found.map_err(|error| match error.code {
        ErrorCode::NotFound => ServiceError::not_found("pipeline", reference),
        code => ServiceError::new(code, error.message),
    })?;
    Ok(found.hits)
}
