//! Retrieval pipelines, their documents and query results.

use std::collections::BTreeMap;
use std::sync::Arc;

use haft_core::Timestamp;
use haft_core::id::{DocumentId, PipelineId};
use haft_core::resource::ResourceRevision;
use haft_core::retrieval;
use haft_core::retrieval::{ChunkPosition, DocumentState, IngestProgress, Pipeline, PipelineDefinition};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::resource::{BrokenFile, ResourceState};

/// A retrieval pipeline with the state of its documents.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Pipeline)]
pub struct PipelineView {
    #[schema(value_type = Uuid)]
    pub id: PipelineId,
    #[serde(flatten)]
    pub definition: Arc<PipelineDefinition>,
    #[serde(flatten)]
    pub state: ResourceState,
    /// The number of documents.
    pub documents: u64,
    /// The number of chunks.
    pub chunks: u64,
    /// The size of all documents together.
    pub bytes: u64,
}

impl From<Pipeline> for PipelineView {
    fn from(pipeline: Pipeline) -> Self {
        let Pipeline { documents, chunks, bytes, .. } = pipeline;
        let (id, definition) = (pipeline.id, Arc::clone(&pipeline.definition));
        Self { id, definition, state: ResourceState::of(&pipeline), documents, chunks, bytes }
    }
}

/// The pipelines of the tenant.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelineList {
    pub pipelines: Vec<PipelineView>,
    pub total: u64,
    /// Files with errors, including partially valid ones; only on the first page, regardless of the filter.
    pub broken_files: Vec<BrokenFile>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A revision of a pipeline.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelineRevision {
    /// The number, from 1.
    pub number: u32,
    /// The hash of the definition.
    pub hash: String,
    /// Whether production uses it.
    pub published: bool,
    /// Who stored it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<String>, required)]
    pub created_by: Option<Arc<str>>,
    /// When it was stored.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    pub definition: Arc<PipelineDefinition>,
}

impl PipelineRevision {
    /// Creates the view of a revision.
    pub fn new(revision: ResourceRevision<PipelineDefinition>, published: Option<u32>) -> Self {
        let ResourceRevision { number, hash, definition, created_by, created_at } = revision;
        Self { number, hash, published: published == Some(number), created_by, created_at, definition }
    }
}

/// A page of revisions of a pipeline.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct PipelineRevisionList {
    pub total: u64,
    pub revisions: Vec<PipelineRevision>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A document of a pipeline, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DocumentInfo {
    /// Its id.
    #[schema(value_type = uuid::Uuid)]
    pub id: DocumentId,
    /// Its name, unique in its pipeline: a document of the same name replaces it.
    #[schema(example = "guide/install.md")]
    pub name: String,
    /// The URL or the folder that it comes from; `null` if it was uploaded.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub source: Option<String>,
    /// The declared media type.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub media_type: Option<String>,
    /// The detected format.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required, example = "markdown")]
    pub format: Option<String>,
    /// Values that queries can filter by.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    pub metadata: BTreeMap<String, Value>,
    /// The hash of its content.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub content_hash: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// The state of its ingestion.
    pub state: DocumentState,
    /// Why it could not be read.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<String>,
    /// The number of indexed chunks.
    pub chunks: u64,
    /// The number of new chunks that are embedded, and their total, while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<IngestProgress>,
    /// When it was added.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When its content or state last changed.
    #[schema(value_type = String, format = DateTime)]
    pub modified_at: Timestamp,
    /// When its chunks were last stored.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(value_type = Option<String>, format = DateTime, required)]
    pub ingested_at: Option<Timestamp>,
}

impl From<retrieval::DocumentInfo> for DocumentInfo {
    fn from(document: retrieval::DocumentInfo) -> Self {
        Self {
            id: document.id,
            name: document.name,
            source: document.source.origin().map(str::to_owned),
            media_type: document.media_type,
            format: document.format,
            metadata: document.metadata,
            content_hash: document.content_hash,
            bytes: document.bytes,
            state: document.state,
            error: document.error,
            chunks: document.chunks,
            progress: document.progress,
            created_at: document.created_at,
            modified_at: document.modified_at,
            ingested_at: document.ingested_at,
        }
    }
}

/// The documents that were added.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AddedDocuments {
    /// The documents; they are read in the background.
    pub documents: Vec<DocumentInfo>,
}

/// A page of documents, by name.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct DocumentList {
    pub documents: Vec<DocumentInfo>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The number of documents in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct IngestStatus {
    /// Documents in the queue.
    pub queued: u64,
    /// Documents that are being read.
    pub running: u64,
    /// Documents that queries can find.
    pub done: u64,
    /// Documents that could not be read.
    pub failed: u64,
}

impl From<retrieval::IngestStatus> for IngestStatus {
    fn from(status: retrieval::IngestStatus) -> Self {
        let retrieval::IngestStatus { queued, running, done, failed } = status;
        Self { queued, running, done, failed }
    }
}

/// The ingestion state of the documents of a pipeline.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct IngestReport {
    /// `running` while documents are queued or being read, otherwise `done`.
    pub state: IngestState,
    #[serde(flatten)]
    pub counts: IngestStatus,
    /// The documents that are queued, running or failed, by name.
    pub documents: Vec<DocumentInfo>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// Whether documents are being ingested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum IngestState {
    /// Some documents are queued.
    Queued,
    /// Some documents are being read.
    Running,
    /// All documents are ingested or failed.
    Done,
}

/// The result of a query.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct QueryResult {
    /// The hits, best first.
    pub hits: Vec<ChunkHit>,
}

/// A chunk that a query found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChunkHit {
    /// The id of the chunk.
    pub chunk_id: String,
    /// The id of its document.
    #[schema(value_type = uuid::Uuid)]
    pub document_id: DocumentId,
    /// The name of its document.
    pub document: String,
    /// The text.
    pub text: String,
    /// The score that orders the hits; comparable within one query only.
    pub score: f32,
    /// The BM25 score, if words matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bm25: Option<f32>,
    /// The cosine, if the chunk is near in meaning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cosine: Option<f32>,
    /// The headings above the chunk, highest first.
    pub headings: Vec<String>,
    /// Where it is in the document.
    pub position: ChunkPosition,
    /// The metadata of the document.
    #[schema(value_type = std::collections::BTreeMap<String, Value>)]
    pub metadata: BTreeMap<String, Value>,
}

impl From<retrieval::ChunkHit> for ChunkHit {
    fn from(hit: retrieval::ChunkHit) -> Self {
        Self {
            chunk_id: hit.chunk_id,
            document_id: hit.document_id,
            document: hit.document,
            text: hit.text,
            score: hit.score,
            bm25: hit.bm25,
            cosine: hit.cosine,
            headings: hit.headings,
            position: hit.position,
            metadata: hit.metadata,
        }
    }
}
