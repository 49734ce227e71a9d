//! Creating, changing and querying retrieval pipelines.

use haft_core::live::ResourceAction;
use haft_core::resource::Resource;
use haft_core::retrieval::{ChunkHit, Pipeline, PipelineDefinition, RetrievalQuery};
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::pipeline::{Labels, Request};
use serde_json::Map;

use crate::audit;
use crate::error::ServiceError;
use crate::identity::Identity;
use crate::installation::Installation;
use crate::resources::{self, ServedKind as _};

/// Returns a pipeline of the caller's tenant.
pub async fn find(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Pipeline, ServiceError> {
    let found = app.store().pipeline(&identity.tenant, reference).await?;
    let found = found.filter(|pipeline| PipelineDefinition::is_visible(identity, pipeline));
    found.ok_or_else(|| ServiceError::not_found("pipeline", reference))
}

/// Creates a pipeline.
pub async fn create(
    app: &Installation,
    identity: &Identity,
    definition: PipelineDefinition,
) -> Result<Pipeline, ServiceError> {
    require_valid(&definition)?;
    resources::note(identity, ResourceAction::Created, &definition);
    let created = resources::create(app, identity, definition).await?;
    Ok(app.store().pipeline_of(created).await?)
}

/// Replaces the definition of a pipeline. Documents follow it once it is published.
pub async fn update(
    app: &Installation,
    identity: &Identity,
    earlier: &Resource<PipelineDefinition>,
    definition: PipelineDefinition,
    expected_revision: Option<u32>,
) -> Result<Pipeline, ServiceError> {
    require_valid(&definition)?;
    resources::note(identity, ResourceAction::Updated, &definition);
    let updated = resources::update(app, identity, earlier, definition, expected_revision).await?;
    Ok(app.store().pipeline_of(updated).await?)
}

fn require_valid(definition: &PipelineDefinition) -> Result<(), ServiceError> {
    match definition.check() {
        problems if problems.is_empty() => Ok(()),
        problems => Err(ServiceError::invalid_definition(&problems)),
    }
}

/// Deletes a pipeline with its documents.
pub async fn delete(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Resource<PipelineDefinition>, ServiceError> {
    identity.require(Role::Editor)?;
    let pipeline = resources::find(app, identity, reference).await?;
    resources::delete(app, identity, &pipeline).await?;
    Ok(pipeline)
}

/// Publishes the newest revision of a pipeline: production uses it, and the documents are read by it.
pub async fn publish(
    app: &Installation,
    identity: &Identity,
    reference: &str,
) -> Result<Pipeline, ServiceError> {
    identity.require(Role::Editor)?;
    let found = resources::find::<PipelineDefinition>(app, identity, reference).await?;
    let published = resources::publish(app, identity, &found).await?;
    Ok(app.store().pipeline_of(published).await?)
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

/// Queries a pipeline. In production mode only editors query a draft.
pub async fn query(
    app: &Installation,
    identity: &Identity,
    reference: &str,
    surface: &'static str,
    query: RetrievalQuery,
) -> Result<Vec<ChunkHit>, ServiceError> {
    // A pipeline that the caller may not see does not exist for it.
    find(app, identity, reference).await?;
    let mode = app.settings().mode;
    let published_only = mode == Mode::Production && identity.role < Role::Editor;
    let query = RetrievalQuery { published_only, ..query };
    let labels = Labels::of_request(crate::request_id::current());
    let request = Request { mode, labels, ..Request::new(identity.principal(), surface, Map::new()) };
    let found = app.retrieval().query(request, reference, query).await;
    found.map(|found| found.hits).map_err(|error| ServiceError { of_call: false, ..error.into() })
}
