//! Creating, changing and deleting retrieval pipelines.

use haft_core::retrieval::{ChunkHit, Pipeline, PipelineDefinition, PipelineStatus, RetrievalQuery};
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::pipeline::{Labels, Request};
use serde_json::Map;

use crate::app::App;
use crate::audit;
use crate::error::ApiError;
use crate::identity::Identity;

/// Returns a pipeline of the caller's tenant.
pub(crate) async fn find(app: &App, identity: &Identity, reference: &str) -> Result<Pipeline, ApiError> {
    let found = app.store().pipeline(&identity.tenant, reference).await?;
    // Whoever may not query it does not read its documents either; editors see what they may change.
    let is_visible = |pipeline: &Pipeline| {
        identity.role >= Role::Editor || identity.allows_pipeline(&pipeline.definition.slug)
    };
    found.filter(is_visible).ok_or_else(|| ApiError::not_found("pipeline", reference))
}

/// Creates a pipeline.
pub(crate) async fn create(
    app: &App,
    identity: &Identity,
    definition: PipelineDefinition,
) -> Result<Pipeline, ApiError> {
    require_valid(&definition)?;
    audit::note(identity, "pipeline.create", definition.slug.as_str());
    let pipeline = app.store().create_pipeline(&identity.tenant, definition).await?;
    app.retrieval().refresh_names().await?;
    Ok(pipeline)
}

/// Replaces the definition of a pipeline. Documents that are cut or embedded differently are ingested again.
pub(crate) async fn update(
    app: &App,
    identity: &Identity,
    earlier: &Pipeline,
    definition: PipelineDefinition,
) -> Result<Pipeline, ApiError> {
    require_valid(&definition)?;
    audit::note(identity, "pipeline.update", definition.slug.as_str());
    let changed = app.store().change_pipeline(&identity.tenant, earlier.id, definition).await?;
    app.retrieval().refresh_names().await?;
    app.retrieval().ingest();
    changed.ok_or_else(|| missing(earlier))
}

fn require_valid(definition: &PipelineDefinition) -> Result<(), ApiError> {
    match definition.check() {
        problems if problems.is_empty() => Ok(()),
        problems => Err(ApiError::invalid_definition(&problems)),
    }
}

fn missing(pipeline: &Pipeline) -> ApiError {
    ApiError::not_found("pipeline", pipeline.definition.slug.as_str())
}

/// Deletes a pipeline with its documents.
pub(crate) async fn delete(app: &App, identity: &Identity, reference: &str) -> Result<Pipeline, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.delete", pipeline.definition.slug.as_str());
    app.store().delete_pipeline(&identity.tenant, pipeline.id).await?;
    app.retrieval().refresh_names().await?;
    Ok(pipeline)
}

/// Publishes a pipeline: tools query it in production mode, too.
pub(crate) async fn publish(app: &App, identity: &Identity, reference: &str) -> Result<Pipeline, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.publish", pipeline.definition.slug.as_str());
    let status = PipelineStatus::Published;
    let published = app.store().set_pipeline_status(&identity.tenant, pipeline.id, status).await?;
    published.ok_or_else(|| missing(&pipeline))
}

/// Fetches and reads all documents of a pipeline again; returns how many.
pub(crate) async fn reingest(app: &App, identity: &Identity, reference: &str) -> Result<u64, ApiError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.reingest", pipeline.definition.slug.as_str());
    let queued = app.store().reingest(&pipeline).await?;
    app.retrieval().ingest();
    Ok(queued)
}

/// Queries a pipeline. In production mode only editors query a draft.
pub(crate) async fn query(
    app: &App,
    identity: &Identity,
    reference: &str,
    surface: &'static str,
    query: RetrievalQuery,
) -> Result<Vec<ChunkHit>, ApiError> {
    // A pipeline that the caller may not see does not exist for it.
    find(app, identity, reference).await?;
    let mode = app.settings().mode;
    let published_only = mode == Mode::Production && identity.role < Role::Editor;
    let query = RetrievalQuery { published_only, ..query };
    let labels = Labels::of_request(crate::request_id::current());
    let request = Request { mode, labels, ..Request::new(identity.principal(), surface, Map::new()) };
    let found = app.retrieval().query(request, reference, query).await;
    found.map(|found| found.hits).map_err(|error| ApiError { of_call: false, ..error.into() })
}
