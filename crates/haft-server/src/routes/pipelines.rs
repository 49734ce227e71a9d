//! `/pipelines`: retrieval pipelines and queries.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use haft_core::id::PipelineId;
use haft_core::name::PipelineSlug;
use haft_core::retrieval::{
    ChunkHit, ChunkUnit, Chunking, DEFAULT_TOP_K, DocumentInfo, DocumentState, EmbeddingModel, IngestStatus,
    Pipeline, PipelineDefinition, PipelineLanguage, RetrievalMode, RetrievalQuery,
};
use haft_core::token::Role;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, created, success};
use crate::request_headers::surface;
use crate::resource_view::{ResourceListParams, ResourceState, expected_revision};
use haft_platform::Installation;
use haft_platform::retrieval::pipelines;

/// A pipeline to create, or its new definition.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct PipelineBody {
    /// The name by which tools refer to it. Required for a new one.
    #[schema(value_type = Option<String>, example = "handbook", max_length = 64)]
    slug: Option<PipelineSlug>,
    /// The name that people see; default: the slug.
    #[schema(example = "Handbook", max_length = 200)]
    name: Option<String>,
    /// What its documents are about.
    #[schema(max_length = 4000)]
    description: Option<String>,
    /// How documents are cut.
    chunking: Option<ChunkingBody>,
    /// The embedding model; without one, words alone are compared.
    embedding: Option<EmbeddingModel>,
    /// The language of the documents; default: detected in each.
    language: Option<PipelineLanguage>,
}

/// How documents are cut; a missing field has its default.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct ChunkingBody {
    /// The size at which a chunk is complete.
    #[schema(minimum = 16, maximum = 16000, example = 300)]
    size: Option<u32>,
    /// How sizes are measured.
    unit: Option<ChunkUnit>,
    /// The size of the text that a chunk repeats from the one before it.
    #[schema(maximum = 8000, example = 40)]
    overlap: Option<u32>,
}

impl From<ChunkingBody> for Chunking {
    fn from(body: ChunkingBody) -> Self {
        let default = Self::default();
        Self {
            size: body.size.unwrap_or(default.size),
            unit: body.unit.unwrap_or(default.unit),
            overlap: body.overlap.unwrap_or(default.overlap),
        }
    }
}

impl PipelineBody {
    fn definition(self, earlier: Option<&PipelineSlug>) -> Result<PipelineDefinition, ApiError> {
        let slug = self.slug.or_else(|| earlier.cloned());
        let slug =
            slug.ok_or_else(|| ApiError::bad_request("missing `slug`; expected a name such as `handbook`"))?;
        Ok(PipelineDefinition {
            name: self.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| slug.to_string()),
            slug,
            description: self.description.unwrap_or_default(),
            chunking: self.chunking.unwrap_or_default().into(),
            embedding: self.embedding,
            language: self.language,
        })
    }
}

/// A retrieval pipeline with the state of its documents.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Pipeline)]
pub(crate) struct PipelineView {
    #[schema(value_type = Uuid)]
    id: PipelineId,
    #[serde(flatten)]
    definition: Arc<PipelineDefinition>,
    #[serde(flatten)]
    state: ResourceState,
    /// The number of documents.
    documents: u64,
    /// The number of chunks.
    chunks: u64,
    /// The size of all documents together.
    bytes: u64,
}

impl From<Pipeline> for PipelineView {
    fn from(pipeline: Pipeline) -> Self {
        let Pipeline { documents, chunks, bytes, .. } = pipeline;
        let (id, definition) = (pipeline.id, Arc::clone(&pipeline.definition));
        Self { id, definition, state: ResourceState::of(&pipeline), documents, chunks, bytes }
    }
}

/// The pipelines of the tenant.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PipelineList {
    pipelines: Vec<PipelineView>,
    total: u64,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A query.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub(crate) struct QueryBody {
    /// The question.
    #[schema(example = "How do I install it?", max_length = 16384)]
    query: String,
    /// The number of hits.
    #[schema(minimum = 1, maximum = 100, example = 5)]
    top_k: Option<u32>,
    /// A condition on metadata: `{"team": "core"}`, or a filter such as `{"range": {"key": "year", "min": 2020}}`.
    #[schema(value_type = Option<Object>)]
    filter: Option<Value>,
    /// How hits are ranked.
    mode: Option<RetrievalMode>,
}

/// What a query found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueryResult {
    /// The hits, best first.
    hits: Vec<ChunkHit>,
}

/// How far the documents of a pipeline are.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IngestReport {
    /// `running` while documents are queued or being read, otherwise `done`.
    state: IngestState,
    #[serde(flatten)]
    counts: IngestStatus,
    /// The documents that are queued, running or failed, by name.
    documents: Vec<DocumentInfo>,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// Whether documents are being ingested.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IngestState {
    /// Some wait.
    Queued,
    /// Some are being read.
    Running,
    /// None is.
    Done,
}

/// List the pipelines by slug.
#[utoipa::path(
    get, path = "/pipelines", tag = "retrieval", params(ResourceListParams, PageParams),
    responses((status = 200, body = Success<PipelineList>))
)]
pub(crate) async fn list(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let page = params.page("pipelines")?;
    let query = page.of_resources(&params)?;
    let (mut found, total) = app.store().list_pipelines(&identity.tenant, &query).await?;
    let next_page_token = page.truncate(&mut found, |pipeline| pipeline.definition.slug.to_string());
    let pipelines = found.into_iter().map(PipelineView::from).collect();
    Ok(success(PipelineList { pipelines, total, next_page_token }).into_response())
}

/// Create a pipeline.
#[utoipa::path(
    post, path = "/pipelines", tag = "retrieval", request_body = PipelineBody,
    responses(
        (status = 201, body = Success<PipelineView>), (status = 400, body = ErrorBody), (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let definition = body.json::<PipelineBody>()?.definition(None)?;
    let pipeline = pipelines::create(&app, &identity, definition).await?;
    Ok(created(PipelineView::from(pipeline)))
}

/// Get a pipeline.
#[utoipa::path(
    get, path = "/pipelines/{ref}", tag = "retrieval", params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<PipelineView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn get(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let found = pipelines::find(&app, &identity, &reference).await?;
    Ok(success(PipelineView::from(found)).into_response())
}

/// Replace the definition of a pipeline: a new revision. A published pipeline keeps its published revision until the new
/// one is published; then documents that are cut or embedded differently are ingested again.
#[utoipa::path(
    put, path = "/pipelines/{ref}", tag = "retrieval", request_body = PipelineBody,
    params(
        ("ref" = String, Path, description = "Id or slug", example = "handbook"),
        ("If-Match" = Option<String>, Header, description = "The newest revision that you know", example = "1"),
    ),
    responses(
        (status = 200, body = Success<PipelineView>), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 409, body = ErrorBody),
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    identity.require(Role::Editor)?;
    let earlier = pipelines::find(&app, &identity, &reference).await?;
    let definition = body.json::<PipelineBody>()?.definition(Some(&earlier.definition.slug))?;
    let expected = expected_revision(&headers)?;
    let updated = pipelines::update(&app, &identity, &earlier, definition, expected).await?;
    Ok(success(PipelineView::from(updated)).into_response())
}

/// Delete a pipeline with its documents. Tools that query it are not ready afterwards.
#[utoipa::path(
    delete, path = "/pipelines/{ref}", tag = "retrieval", params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn delete(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let pipeline = pipelines::delete(&app, &identity, &reference).await?;
    Ok(reply::message(format!("Pipeline '{}' deleted", pipeline.definition.slug)))
}

/// Publish the newest revision of a pipeline: tools query it in production mode, and its documents are read by it.
#[utoipa::path(
    post, path = "/pipelines/{ref}/publish", tag = "retrieval", params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<PipelineView>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn publish(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let published = pipelines::publish(&app, &identity, &reference).await?;
    Ok(success(PipelineView::from(published)).into_response())
}

/// Fetch and read all documents of a pipeline again. It costs what has changed in them.
#[utoipa::path(
    post, path = "/pipelines/{ref}/reingest", tag = "retrieval", params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    responses((status = 200, body = Success<Message>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn reingest(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
) -> Result<Response, ApiError> {
    let queued = pipelines::reingest(&app, &identity, &reference).await?;
    Ok(reply::message(format!("{queued} documents queued")))
}

/// Get how far the documents of a pipeline are, and those that are queued, running or failed.
#[utoipa::path(
    get, path = "/pipelines/{ref}/ingests", tag = "retrieval",
    params(("ref" = String, Path, description = "Id or slug", example = "handbook"), PageParams),
    responses((status = 200, body = Success<IngestReport>), (status = 404, body = ErrorBody))
)]
pub(crate) async fn ingests(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    params: Params,
) -> Result<Response, ApiError> {
    let pipeline = pipelines::find(&app, &identity, &reference).await?;
    let page = params.page("ingests")?;
    let counts = app.store().ingest_status(&pipeline).await?;
    let states = [DocumentState::Queued, DocumentState::Running, DocumentState::Failed];
    let documents = app.store().documents(&pipeline, &states, page.after.as_deref(), page.size).await?;
    let next_page_token = page.token_after(&documents, page.size, |document| document.name.clone());
    let state = match counts {
        IngestStatus { running: 1.., .. } => IngestState::Running,
        IngestStatus { queued: 1.., .. } => IngestState::Queued,
        _ => IngestState::Done,
    };
    Ok(success(IngestReport { state, counts, documents, next_page_token }).into_response())
}

/// Query a pipeline.
#[utoipa::path(
    post, path = "/pipelines/{ref}/query", tag = "retrieval", params(("ref" = String, Path, description = "Id or slug", example = "handbook")),
    request_body = QueryBody,
    responses(
        (status = 200, body = Success<QueryResult>), (status = 400, body = ErrorBody), (status = 404, body = ErrorBody),
        (status = 502, body = ErrorBody, description = "The embedding model is unavailable"),
    )
)]
pub(crate) async fn query(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    Path(reference): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, ApiError> {
    let QueryBody { query, top_k, filter, mode } = body.json()?;
    let query = RetrievalQuery {
        top_k: top_k.unwrap_or(DEFAULT_TOP_K),
        filter: filter.filter(|filter| !filter.is_null()),
        mode: mode.unwrap_or_default(),
        ..RetrievalQuery::new(query)
    };
    let hits = pipelines::query(&app, &identity, &reference, surface(&headers), query).await?;
    Ok(success(QueryResult { hits }).into_response())
}
