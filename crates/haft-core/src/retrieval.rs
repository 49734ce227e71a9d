//! Retrieval pipelines: documents that tools and agents search.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::BoxFuture;
use crate::Timestamp;
use crate::callable::{CallableKind, CallableResource};
use crate::executor::CallContext;
use crate::id::{DocumentId, PipelineId};
use crate::live::{ObjectEvent, PipelineEvent, ResourceAction};
use crate::name::{PipelineSlug, TenantId};
use crate::outcome::CallError;
use crate::problem::Problem;
use crate::resource::{Resource, ResourceKind, ResourceSpec};

/// The longest display name of a pipeline, in characters.
pub const MAX_NAME: usize = 200;
/// The longest description, in characters.
pub const MAX_DESCRIPTION: usize = 4000;
/// The longest name of a document, in bytes.
pub const MAX_DOCUMENT_NAME: usize = 1024;
/// The largest size of a chunk.
pub const MAX_CHUNK_SIZE: u32 = 16_000;
/// The number of hits if a query does not say.
pub const DEFAULT_TOP_K: u32 = 5;
/// The largest number of hits of a query.
pub const MAX_TOP_K: u32 = 100;
/// The longest query, in bytes.
pub const MAX_QUERY: usize = 16 * 1024;

/// The definition of a pipeline, as its author writes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct PipelineDefinition {
    /// The name by which tools refer to it.
    #[cfg_attr(feature = "openapi", schema(value_type = String, example = "handbook", max_length = 64))]
    pub slug: PipelineSlug,
    /// The name that people see; default: the slug.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, example = "Handbook", max_length = 200))]
    pub name: String,
    /// What its documents are about.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required, max_length = 4000))]
    pub description: String,
    /// How documents are cut.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub chunking: Chunking,
    /// The embedding model; without one, words alone are compared.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub embedding: Option<EmbeddingModel>,
    /// The language of the documents; default: detected in each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<PipelineLanguage>,
}

impl PipelineDefinition {
    /// Creates a definition with defaults.
    pub fn new(slug: PipelineSlug) -> Self {
        Self {
            name: slug.to_string(),
            slug,
            description: String::new(),
            chunking: Chunking::default(),
            embedding: None,
            language: None,
        }
    }

    /// Returns every problem.
    pub fn check(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut error =
            |field: &str, message: String| problems.push(Problem::new(field, "invalid_value", message));
        if self.name.chars().count() > MAX_NAME {
            error("name", format!("exceeds the limit of {MAX_NAME} characters"));
        }
        if self.description.chars().count() > MAX_DESCRIPTION {
            error("description", format!("exceeds the limit of {MAX_DESCRIPTION} characters"));
        }
        let Chunking { size, overlap, .. } = self.chunking;
        if !(16..=MAX_CHUNK_SIZE).contains(&size) {
            error("chunking.size", format!("is {size}; use 16 to {MAX_CHUNK_SIZE}"));
        } else if overlap > size / 2 {
            error("chunking.overlap", format!("is {overlap}; use at most half of `size`"));
        }
        let Some(embedding) = &self.embedding else { return problems };
        if embedding.model.trim().is_empty() || embedding.model.len() > 256 {
            error("embedding.model", "expected the name of a model, up to 256 bytes".to_owned());
        }
        let is_http = ["http://", "https://"].iter().any(|scheme| embedding.base_url.starts_with(scheme));
        if !is_http || embedding.base_url.len() > 2048 {
            error("embedding.base_url", "expected a URL such as `https://api.openai.com/v1`".to_owned());
        }
        if embedding.dimensions.is_some_and(|dimensions| dimensions == 0 || dimensions > 16_384) {
            error("embedding.dimensions", "use 1 to 16384".to_owned());
        }
        problems
    }
}

/// How documents are cut into chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields, expecting = "an object")]
pub struct Chunking {
    /// The size at which a chunk is complete. A paragraph that is longer stays whole up to twice this size.
    #[cfg_attr(feature = "openapi", schema(required, minimum = 16, maximum = 16000, example = 300))]
    pub size: u32,
    /// How sizes are measured.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub unit: ChunkUnit,
    /// The size of the text that a chunk repeats from the one before it.
    #[cfg_attr(feature = "openapi", schema(required, maximum = 8000))]
    pub overlap: u32,
}

impl Default for Chunking {
    fn default() -> Self {
        Self { size: 300, unit: ChunkUnit::Tokens, overlap: 40 }
    }
}

/// How sizes of chunks are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChunkUnit {
    /// Tokens of a language model, estimated.
    #[default]
    Tokens,
    /// Unicode characters.
    Characters,
}

/// The language of documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum PipelineLanguage {
    /// English.
    English,
    /// German.
    German,
}

/// An embedding model behind an OpenAI-compatible endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct EmbeddingModel {
    /// The name of the model.
    #[cfg_attr(feature = "openapi", schema(example = "text-embedding-3-small", max_length = 256))]
    pub model: String,
    /// The address; requests go to `{base_url}/embeddings`.
    #[serde(default = "default_base_url")]
    #[cfg_attr(feature = "openapi", schema(example = "https://api.openai.com/v1"))]
    pub base_url: String,
    /// The name of the credential that has the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(example = "OPENAI_API_KEY"))]
    pub credential: Option<String>,
    /// The length of the vectors; default: that of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 16384))]
    pub dimensions: Option<u32>,
}

impl EmbeddingModel {
    /// Creates a model at the default address.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), base_url: default_base_url(), credential: None, dimensions: None }
    }
}

fn default_base_url() -> String {
    "https://api.openai.com/v1".to_owned()
}

impl ResourceSpec for PipelineDefinition {
    type Id = PipelineId;
    const KIND: ResourceKind = ResourceKind::Pipeline;

    fn slug(&self) -> &str {
        self.slug.as_str()
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn set_slug(&mut self, other: &Self) {
        self.slug.clone_from(&other.slug);
    }

    fn event(pipeline: &Resource<Self>, change: ResourceAction) -> ObjectEvent {
        ObjectEvent::Pipeline(PipelineEvent {
            change,
            id: pipeline.id,
            pipeline: pipeline.definition.slug.to_string(),
            status: pipeline.status,
        })
    }
}

/// A stored pipeline with the state of its documents. These are cut and embedded by the published definition, or the
/// newest one while nothing is published.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// The definition and its life cycle.
    pub resource: Resource<PipelineDefinition>,
    /// Grows whenever documents are cut or embedded differently from then on.
    pub ingest_revision: i64,
    /// Grows with each change of its chunks.
    pub generation: i64,
    /// The number of documents.
    pub documents: u64,
    /// The number of chunks.
    pub chunks: u64,
    /// The size of all documents together.
    pub bytes: u64,
}

impl std::ops::Deref for Pipeline {
    type Target = Resource<PipelineDefinition>;

    fn deref(&self) -> &Self::Target {
        &self.resource
    }
}

impl Pipeline {
    /// Returns the pipeline as what is called when it is queried.
    pub fn callable(&self) -> CallableResource {
        let slug = self.definition.slug.as_str().into();
        CallableResource { kind: CallableKind::Pipeline, id: self.id.0, slug, revision: self.revision }
    }
}

/// Where a document comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum DocumentSource {
    /// It was uploaded.
    Upload,
    /// It is fetched from a URL.
    Url {
        /// The URL.
        url: String,
    },
    /// It was read from a folder of the machine that haft runs on.
    Folder {
        /// The folder.
        path: String,
    },
}

impl DocumentSource {
    /// Returns the URL or the folder.
    pub fn origin(&self) -> Option<&str> {
        match self {
            Self::Upload => None,
            Self::Url { url } => Some(url),
            Self::Folder { path } => Some(path),
        }
    }
}

fn origin<S: serde::Serializer>(source: &DocumentSource, serializer: S) -> Result<S::Ok, S::Error> {
    source.origin().serialize(serializer)
}

/// How far a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum DocumentState {
    /// It waits to be read.
    Queued,
    /// It is being read, cut and embedded.
    Running,
    /// It can be found.
    Done,
    /// It could not be read; chunks of an earlier version can still be found.
    Failed,
}

impl DocumentState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Queued, Self::Running, Self::Done, Self::Failed];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }

    /// Parses the name that [`DocumentState::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A document of a pipeline, without its content.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DocumentInfo {
    /// Its id.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub id: DocumentId,
    /// Its name, unique in its pipeline: a document of the same name replaces it.
    #[cfg_attr(feature = "openapi", schema(example = "guide/install.md"))]
    pub name: String,
    /// The URL or the folder that it comes from; `null` if it was uploaded.
    #[serde(serialize_with = "origin")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, required))]
    pub source: DocumentSource,
    /// The declared media type.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub media_type: Option<String>,
    /// The detected format.
    #[cfg_attr(feature = "openapi", schema(required, example = "markdown"))]
    pub format: Option<String>,
    /// Values that queries can filter by.
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, Value>))]
    pub metadata: BTreeMap<String, Value>,
    /// The hash of its content.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub content_hash: Option<String>,
    /// Its size.
    pub bytes: u64,
    /// The state of its ingestion.
    pub state: DocumentState,
    /// Why it could not be read.
    #[cfg_attr(feature = "openapi", schema(required))]
    pub error: Option<String>,
    /// The number of indexed chunks.
    pub chunks: u64,
    /// The number of new chunks that are embedded, and their total, while it is running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<IngestProgress>,
    /// When it was added.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub created_at: Timestamp,
    /// When its content or state last changed.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub modified_at: Timestamp,
    /// When its chunks were last stored.
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime, required))]
    pub ingested_at: Option<Timestamp>,
}

/// How far the embedding of a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct IngestProgress {
    /// The chunks that are embedded.
    pub done: u32,
    /// The chunks to embed.
    pub total: u32,
}

/// The number of documents in each state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
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

/// Where a chunk is in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChunkPosition {
    /// The page, counted from 1, in formats with pages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page: Option<u32>,
    /// The first line, counted from 1, in text formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The first byte in the text of the document.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
}

/// A chunk as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct ChunkRecord {
    /// Its id.
    pub id: String,
    /// Its document.
    pub document: DocumentId,
    /// Its number in the document, from 0.
    pub ordinal: u32,
    /// The hash of headings, text and metadata.
    pub hash: String,
    /// The headings above it, highest first.
    pub headings: Vec<String>,
    /// The text.
    pub text: String,
    /// Where it is.
    pub position: ChunkPosition,
    /// The language that its words are stemmed by.
    pub language: String,
    /// The metadata of its document.
    pub metadata: BTreeMap<String, Value>,
    /// Its vector, if there is an embedding model.
    pub embedding: Option<Vec<f32>>,
}

/// How hits are ranked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RetrievalMode {
    /// By words and by meaning; by words alone without an embedding model.
    #[default]
    Hybrid,
    /// By words.
    Bm25,
    /// By meaning.
    Embedding,
}

/// A query to a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct RetrievalQuery {
    /// The question.
    pub query: String,
    /// The number of hits.
    pub top_k: u32,
    /// A condition on metadata: `{"team": "core"}`, or a filter such as `{"range": {"key": "year", "min": 2020}}`.
    pub filter: Option<Value>,
    /// How hits are ranked.
    pub mode: RetrievalMode,
    /// Whether a draft of a pipeline is an error, as in production mode.
    pub published_only: bool,
}

impl RetrievalQuery {
    /// Creates a query with defaults.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            top_k: DEFAULT_TOP_K,
            filter: None,
            mode: RetrievalMode::default(),
            published_only: false,
        }
    }
}

/// A chunk that a query found.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ChunkHit {
    /// The id of the chunk.
    pub chunk_id: String,
    /// The id of its document.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
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
    #[cfg_attr(feature = "openapi", schema(value_type = std::collections::BTreeMap<String, Value>))]
    pub metadata: BTreeMap<String, Value>,
}

/// The result of a query.
#[derive(Debug, Clone, PartialEq)]
pub struct Retrieved {
    /// The pipeline.
    pub pipeline: PipelineSlug,
    /// The hits, best first.
    pub hits: Vec<ChunkHit>,
}

/// The pipelines of tenants, for executors.
pub trait Retrieval: Send + Sync {
    /// Queries a pipeline of the caller's tenant for a call, by id or slug. A pipeline of another tenant is not found.
    fn query<'a>(
        &'a self,
        call: &'a CallContext,
        pipeline: &'a str,
        query: RetrievalQuery,
    ) -> BoxFuture<'a, Result<Retrieved, CallError>>;

    /// Returns whether a tenant has a pipeline, as far as this process knows. It is asked often and must not block.
    fn exists(&self, tenant: &TenantId, pipeline: &str) -> bool;
}

/// Returns the input schema of a retrieval tool: one in which `query` is present and required.
#[must_use]
pub fn with_query(schema: Option<Value>) -> Value {
    let Some(Value::Object(mut schema)) = schema else {
        return with_query(Some(json!({"type": "object"})));
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        properties
            .entry("query")
            .or_insert_with(|| json!({"type": "string", "description": "What to look for"}));
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required
        && !required.iter().any(|name| name == "query")
    {
        required.push(json!("query"));
    }
    schema.entry("type").or_insert_with(|| json!("object"));
    Value::Object(schema)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retrieval_tools_require_a_query() {
        let expected = json!({
            "type": "object",
            "properties": {"query": {"type": "string", "description": "What to look for"}},
            "required": ["query"],
        });
        assert_eq!(with_query(None), expected);
        let own = json!({"properties": {"query": {"type": "string", "maxLength": 9}, "top_k": {}}, "required": ["top_k"]});
        let made = with_query(Some(own));
        assert_eq!(made["properties"]["query"]["maxLength"], 9);
        assert_eq!(made["required"], json!(["top_k", "query"]));
        assert_eq!(with_query(Some(made.clone())), made);
    }

    #[test]
    fn bad_definitions_are_reported() {
        let check = |definition: Value, expected: &str| {
            let definition: PipelineDefinition = serde_json::from_value(definition).unwrap();
            assert_eq!(crate::problem::join(&definition.check()), expected);
        };
        check(json!({"slug": "docs"}), "");
        check(json!({"slug": "docs", "chunking": {"size": 5}}), "`chunking.size`: is 5; use 16 to 16000");
        check(
            json!({"slug": "docs", "chunking": {"size": 20, "overlap": 11}}),
            "`chunking.overlap`: is 11; use at most half of `size`",
        );
        check(
            json!({"slug": "docs", "embedding": {"model": "m", "base_url": "file:///x"}}),
            "`embedding.base_url`: expected a URL such as `https://api.openai.com/v1`",
        );
    }
}
