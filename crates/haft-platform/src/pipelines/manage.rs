//! Finding and querying retrieval pipelines.

use haft_core::resource::ResourceKind;
use haft_core::retrieval::{ChunkHit, Pipeline, RetrievalQuery};
use haft_core::runnable::Mode;
use haft_core::token::Role;
use haft_runtime::pipeline::{CallOptions, Request};
use serde_json::Map;

use crate::audit;
use crate::context::Context;
use crate::error::ServiceError;
use crate::identity::Identity;

/// Returns a pipeline of the caller's tenant.
pub async fn find(app: &Context, identity: &Identity, reference: &str) -> Result<Pipeline, ServiceError> {
    let found = app.store().documents().pipeline(&identity.tenant, reference).await?;
    let found =
        found.filter(|found| identity.sees_resource(ResourceKind::Pipeline, found.definition.slug.as_str()));
    found.ok_or_else(|| ServiceError::not_found("pipeline", reference))
}

/// Fetches and reads all documents of a pipeline again; returns how many.
pub async fn reingest(app: &Context, identity: &Identity, reference: &str) -> Result<u64, ServiceError> {
    identity.require(Role::Editor)?;
    let pipeline = find(app, identity, reference).await?;
    audit::note(identity, "pipeline.reingest", pipeline.definition.slug.as_str());
    let queued = app.store().documents().reingest(&pipeline).await?;
    app.retrieval().ingest();
    Ok(queued)
}

/// Queries a pipeline. In production mode, only editors can query a draft.
pub async fn query(
    app: &Context,
    identity: &Identity,
    reference: &str,
    surface: &'static str,
    query: RetrievalQuery,
) -> Result<Vec<ChunkHit>, ServiceError> {
    // A pipeline that is hidden from the caller is reported as not found.
    find(app, identity, reference).await?;
    let mode = app.settings().mode;
    let published_only = mode == Mode::Production && identity.role < Role::Editor;
    let query = RetrievalQuery { published_only, ..query };
    let options = CallOptions::of_request(crate::request_id::current());
    let request = Request { mode, options, ..Request::new(identity.principal(), surface, Map::new()) };
    let found = app.retrieval().query(request, reference, query).await;
    found.map(|found| found.hits).map_err(|error| ServiceError { of_call: false, ..error.into() })
}
