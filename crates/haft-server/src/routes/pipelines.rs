//! `/pipelines`: retrieval pipelines and queries.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use haft_core::name::{PipelineSlug, TenantId};
use haft_core::problem::Problem;
use haft_core::resource::{Resource, ResourceRevision};
use haft_core::retrieval::{
    ChunkUnit, Chunking, DEFAULT_TOP_K, DocumentState, EmbeddingModel, IngestStatus, PipelineDefinition,
    PipelineLanguage, RetrievalMode, RetrievalQuery,
};
use serde::Deserialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::routed_kind::{ListedResources, ListedRevisions, RoutedKind};
use crate::authentication::Caller;
use crate::body::Body;
use crate::error::ApiError;
use crate::error::ErrorBody;
use crate::params::{PageParams, Params};
use crate::reply::{self, Message, Success, success};
use crate::request_headers::surface;
use haft_api::pipeline::{
    IngestReport, IngestState, PipelineList, PipelineRevision, PipelineRevisionList, PipelineView,
    QueryResult,
};
use haft_platform::Installation;
use haft_platform::pipelines;

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

impl RoutedKind for PipelineDefinition {
    const PATH: &'static str = "/pipelines";
    const TAG: &'static str = "retrieval";
    const EXAMPLE: &'static str = "handbook";
    const UPDATE: &'static str = "Replace the definition of a pipeline: a new revision. A published pipeline keeps its published \
        revision until the new one is published; then documents that are cut or embedded differently are ingested again.";
    type Body = PipelineBody;
    type View = PipelineView;
    type List = PipelineList;
    type Revision = PipelineRevision;
    type Revisions = PipelineRevisionList;

    fn read(body: &Body, earlier: Option<&Resource<Self>>) -> Result<(Self, Vec<Problem>), ApiError> {
        let slug = earlier.map(|pipeline| &pipeline.definition.slug);
        Ok((body.json::<PipelineBody>()?.definition(slug)?, Vec::new()))
    }

    async fn view(
        app: &Installation,
        pipeline: Resource<Self>,
        _warnings: Vec<Problem>,
    ) -> Result<PipelineView, ApiError> {
        Ok(PipelineView::from(app.store().documents().pipeline_of(pipeline).await?))
    }

    async fn views(
        app: &Installation,
        tenant: &TenantId,
        found: Vec<Resource<Self>>,
    ) -> Result<Vec<PipelineView>, ApiError> {
        let found = app.store().documents().with_documents(tenant, found).await?;
        Ok(found.into_iter().map(PipelineView::from).collect())
    }

    fn list(page: ListedResources<PipelineView>) -> PipelineList {
        let ListedResources { items, total, broken_files, next_page_token } = page;
        PipelineList { pipelines: items, total, broken_files, next_page_token }
    }

    fn revision(revision: ResourceRevision<Self>, published: Option<u32>) -> PipelineRevision {
        PipelineRevision::new(revision, published)
    }

    fn revisions(page: ListedRevisions<PipelineRevision>) -> PipelineRevisionList {
        let ListedRevisions { items, total, next_page_token } = page;
        PipelineRevisionList { total, revisions: items, next_page_token }
    }
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
    let counts = app.store().documents().ingest_status(&pipeline).await?;
    let states = [DocumentState::Queued, DocumentState::Running, DocumentState::Failed];
    let documents =
        app.store().documents().list(&pipeline, &states, page.after.as_deref(), page.size).await?;
    let next_page_token = page.token_after(&documents, page.size, |document| document.name.clone());
    let state = match counts {
        IngestStatus { running: 1.., .. } => IngestState::Running,
        IngestStatus { queued: 1.., .. } => IngestState::Queued,
        _ => IngestState::Done,
    };
    let documents = documents.into_iter().map(Into::into).collect();
    Ok(success(IngestReport { state, counts: counts.into(), documents, next_page_token }).into_response())
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
    Ok(success(QueryResult { hits: hits.into_iter().map(Into::into).collect() }).into_response())
}
