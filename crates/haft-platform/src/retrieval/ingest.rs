//! Reads queued documents: fetch, read, cut, embed, store.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use haft_core::catalog::StoreError;
use haft_core::hash;
use haft_core::retrieval::{
    ChunkPosition, ChunkRecord, ChunkUnit, DocumentSource, Pipeline, PipelineDefinition, PipelineLanguage,
};
use haft_retrieval::{
    Chunk, ChunkOptions, Language, ReadLimits, ReadOptions, SizeUnit, Source, StoredChunk as KnownChunk,
    chunk, diff, embed_all, read,
};
use haft_store::{ClaimedDocument, DocumentChunks, KeptChunk, StoredChunk, StoredChunks};

use super::embedding::{self, Endpoint};
use super::fetch;
use super::host::RetrievalHost;
use super::index::{MAX_VECTOR_BYTES, index_metadata};

/// How often a node polls for documents and names that other nodes stored.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How many texts are embedded between two notes of the progress.
const EMBEDDED_AT_ONCE: usize = 256;

/// Why a document was not stored.
enum IngestError {
    /// The document cannot be read; the text says why.
    Document(String),
    /// The store failed.
    Store(StoreError),
}

impl From<StoreError> for IngestError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

fn bad(message: impl Into<String>) -> IngestError {
    IngestError::Document(message.into())
}

impl RetrievalHost {
    /// Starts to read queued documents, unless enough are being read.
    pub fn ingest(self: &Arc<Self>) {
        if self.stop.is_cancelled() {
            return;
        }
        let Ok(permit) = Arc::clone(&self.ingesting).try_acquire_owned() else { return };
        let host = Arc::clone(self);
        self.tasks.spawn(async move {
            while !host.stop.is_cancelled() && next(&host).await {
                // Starts another worker if one is free: there may be more documents.
                host.ingest();
            }
            drop(permit);
        });
    }

    /// Polls for documents and names that other nodes stored, until dropped.
    pub async fn follow(self: &Arc<Self>) {
        loop {
            self.ingest();
            if let Err(error) = self.refresh_names().await {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "cannot read the names of pipelines"
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

/// Ingests the next queued document; returns whether there was one.
async fn next(host: &Arc<RetrievalHost>) -> bool {
    let store = &host.parts.store;
    let claimed = match store.documents().claim(1).await {
        Ok(mut claimed) => claimed.pop(),
        Err(error) => {
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot claim documents");
            None
        }
    };
    let Some(claim) = claimed else { return false };
    let result = tokio::select! {
        // It stays claimed by this node, which is gone when the next one looks.
        () = host.stop.cancelled() => return false,
        result = ingest(host, &claim) => result,
    };
    let ended = match result {
        Ok(()) => Ok(()),
        Err(IngestError::Document(message)) => store.documents().fail(&claim, Some(&message)).await,
        Err(IngestError::Store(error @ StoreError::ClaimLost)) => Err(error),
        Err(IngestError::Store(error)) => {
            let message = format!("cannot store the document: {error}");
            tracing::warn!(error = &error as &dyn std::error::Error, "cannot store a document");
            store.documents().fail(&claim, Some(&message)).await
        }
    };
    if let Err(StoreError::ClaimLost) = ended {
        tracing::info!(document = %claim.info.id, "the document changed or another node reads it; the result was dropped");
    } else if let Err(error) = ended {
        tracing::warn!(error = &error as &dyn std::error::Error, "cannot store the state of a document");
    }
    true
}

async fn ingest(host: &Arc<RetrievalHost>, claim: &ClaimedDocument) -> Result<(), IngestError> {
    let store = &host.parts.store;
    let pipeline = store.documents().pipeline(&claim.tenant, &claim.pipeline.to_string()).await?;
    // Deleted meanwhile, and the document with it.
    let Some(pipeline) = pipeline else { return Ok(()) };
    let (bytes, media_type) = content(host, claim).await?;
    let content_hash = hash::of_bytes(&bytes);
    let stored = store.documents().stored_chunks(claim.info.id).await?;
    let is_embedded = pipeline.serving().embedding.is_none() || stored.iter().all(|chunk| chunk.is_embedded);
    let is_read = claim.ingested_hash.as_ref() == Some(&content_hash)
        && claim.ingested_revision == Some(pipeline.ingest_revision);
    if is_read && is_embedded && !stored.is_empty() {
        return Ok(store.documents().keep_chunks(claim).await?);
    }
    let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let job = ReadJob {
        bytes,
        media_type,
        name: file_name(claim),
        source: Source {
            document: claim.info.id.to_string(),
            metadata: index_metadata(&claim.info.metadata),
        },
        definition: Arc::clone(pipeline.serving()),
        max_bytes: host.parts.settings.max_document_bytes,
    };
    let reading = tokio::task::spawn_blocking(move || job.run());
    let (format, chunks) =
        reading.await.map_err(|_| bad("internal error while reading the document; see the server log"))??;
    let mut new = changes(&stored, &chunks, &pipeline);
    (new.format, new.content) = (format, (content_hash, size));
    new.max_chunks = host.parts.settings.max_chunks;
    if new.total > new.max_chunks {
        return Err(too_many(new.total, new.max_chunks));
    }
    embed(host, claim, &pipeline, &chunks, &mut new).await?;
    let max = new.max_chunks;
    match store.documents().store_chunks(claim, new).await {
        Ok(StoredChunks::Stored | StoredChunks::Superseded) => Ok(()),
        Ok(StoredChunks::TooMany { chunks }) => Err(too_many(chunks, max)),
        // A later attempt would store as much.
        Err(error @ StoreError::LimitReached { .. }) => Err(bad(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

fn too_many(chunks: u64, max: u64) -> IngestError {
    bad(format!(
        "the pipeline would have {chunks} chunks; the limit is {max} (`retrieval.max_chunks`). Split the document, raise \
         the chunk size, or use another pipeline"
    ))
}

/// Returns the content of a document and its media type.
async fn content(
    host: &RetrievalHost,
    claim: &ClaimedDocument,
) -> Result<(Vec<u8>, Option<String>), IngestError> {
    match &claim.info.source {
        DocumentSource::Upload | DocumentSource::Folder { .. } => {
            let found = host.parts.store.documents().content(claim.info.id).await?;
            let bytes = found.ok_or_else(|| bad("document is empty"))?;
            Ok((bytes, claim.info.media_type.clone()))
        }
        DocumentSource::Url { url } => {
            let limit = host.parts.settings.max_document_bytes;
            let fetched =
                fetch::fetch(&host.parts.egress, url, limit).await.map_err(IngestError::Document)?;
            Ok((fetched.bytes, fetched.media_type))
        }
    }
}

/// Returns the file name that the format follows from if the media type does not say.
fn file_name(claim: &ClaimedDocument) -> String {
    let name = match &claim.info.source {
        DocumentSource::Url { url } => url.split(['?', '#']).next().unwrap_or_default(),
        DocumentSource::Upload | DocumentSource::Folder { .. } => &claim.info.name,
    };
    name.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Everything that reading and cutting a document needs, on a thread that may block.
struct ReadJob {
    bytes: Vec<u8>,
    media_type: Option<String>,
    name: String,
    source: Source,
    definition: Arc<PipelineDefinition>,
    max_bytes: usize,
}

impl ReadJob {
    fn run(self) -> Result<(String, Vec<Chunk>), IngestError> {
        let options = ReadOptions {
            media_type: self.media_type.as_deref(),
            file_name: Some(self.name.as_str()).filter(|name| !name.is_empty()),
            limits: ReadLimits { max_bytes: self.max_bytes, ..ReadLimits::default() },
        };
        let mut document = read(&self.bytes, &options).map_err(|error| bad(error.to_string()))?;
        if let Some(language) = self.definition.language {
            document.language = match language {
                PipelineLanguage::English => Language::English,
                PipelineLanguage::German => Language::German,
            };
        }
        let chunks = chunk(&document, &self.source, &chunk_options(&self.definition));
        let chunks = chunks.map_err(|error| bad(error.to_string()))?;
        let format = serde_json::to_value(document.format).unwrap_or_default();
        Ok((format.as_str().unwrap_or_default().to_owned(), chunks))
    }
}

fn chunk_options(definition: &PipelineDefinition) -> ChunkOptions {
    let size = |value: u32| usize::try_from(value).unwrap_or(usize::MAX);
    ChunkOptions {
        unit: match definition.chunking.unit {
            ChunkUnit::Tokens => SizeUnit::Tokens,
            ChunkUnit::Characters => SizeUnit::Characters,
        },
        target: size(definition.chunking.size),
        max: size(definition.chunking.size).saturating_mul(2),
        overlap: size(definition.chunking.overlap),
    }
}

/// Compares the chunks of a document with the stored ones.
fn changes(stored: &[StoredChunk], chunks: &[Chunk], pipeline: &Pipeline) -> DocumentChunks {
    let known: Vec<KnownChunk> =
        stored.iter().map(|chunk| KnownChunk { id: chunk.id.clone(), hash: chunk.hash.clone() }).collect();
    let by_id: HashMap<&str, &StoredChunk> = stored.iter().map(|chunk| (chunk.id.as_str(), chunk)).collect();
    let difference = diff(&known, chunks);
    let needs_vectors = pipeline.serving().embedding.is_some();
    let keep = difference.keep.iter().filter_map(|(id, place)| {
        let (new, old) = (chunks.get(*place)?, by_id.get(id.as_str())?);
        let position = position(new);
        let is_same = old.ordinal == new.ordinal && old.position == position;
        let is_kept = is_same && (old.is_embedded || !needs_vectors);
        let (ordinal, is_embedded) = (new.ordinal, old.is_embedded);
        (!is_kept).then(|| KeptChunk { id: id.clone(), ordinal, position, is_embedded, embedding: None })
    });
    DocumentChunks {
        revision: pipeline.ingest_revision,
        add: difference.add.iter().filter_map(|place| chunks.get(*place)).filter_map(record).collect(),
        keep: keep.collect(),
        remove: difference.remove,
        total: u64::try_from(chunks.len()).unwrap_or(u64::MAX),
        ..DocumentChunks::default()
    }
}

fn position(chunk: &Chunk) -> ChunkPosition {
    let offset = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    ChunkPosition {
        page: chunk.position.pages.map(|(first, _)| first),
        line: chunk.position.lines.map(|(first, _)| first),
        start: offset(chunk.position.bytes.start),
        end: offset(chunk.position.bytes.end),
    }
}

fn record(chunk: &Chunk) -> Option<ChunkRecord> {
    Some(ChunkRecord {
        id: chunk.id.clone(),
        // It was made from the document's id.
        document: chunk.document.parse().ok()?,
        ordinal: chunk.ordinal,
        hash: chunk.hash.clone(),
        headings: chunk.headings.clone(),
        text: chunk.text.clone(),
        position: position(chunk),
        language: chunk.language.as_str().to_owned(),
        metadata: std::collections::BTreeMap::new(),
        embedding: None,
    })
}

/// Embeds the chunks that have no vector.
async fn embed(
    host: &RetrievalHost,
    claim: &ClaimedDocument,
    pipeline: &Pipeline,
    chunks: &[Chunk],
    new: &mut DocumentChunks,
) -> Result<(), IngestError> {
    let Some(model) = &pipeline.serving().embedding else { return Ok(()) };
    let texts: HashMap<&str, String> =
        chunks.iter().map(|chunk| (chunk.id.as_str(), chunk.text_with_headings())).collect();
    let added = new.add.iter_mut().map(|chunk| (chunk.id.clone(), &mut chunk.embedding));
    let kept = new
        .keep
        .iter_mut()
        .filter(|chunk| !chunk.is_embedded)
        .map(|chunk| (chunk.id.clone(), &mut chunk.embedding));
    let mut targets: Vec<_> = added.chain(kept).collect();
    let total = targets.len();
    if total == 0 {
        return Ok(());
    }
    let endpoint = Endpoint::connect(host, &claim.tenant, model).await;
    let endpoint = endpoint.map_err(|error| bad(error.to_string()))?;
    let mut done = 0;
    for batch in targets.chunks_mut(EMBEDDED_AT_ONCE) {
        host.parts.store.documents().record_progress(claim, done, total).await?;
        let inputs: Vec<String> =
            batch.iter().map(|(id, _)| texts.get(id.as_str()).cloned().unwrap_or_default()).collect();
        let vectors =
            embed_all(&endpoint, &inputs).await.map_err(|error| bad(embedding::describe(&error)))?;
        check_memory(&vectors, new.total, pipeline)?;
        for ((_, target), vector) in batch.iter_mut().zip(vectors) {
            **target = Some(vector);
        }
        done += batch.len();
    }
    Ok(())
}

/// Rejects a document whose vectors do not fit into the memory of one pipeline.
fn check_memory(vectors: &[Vec<f32>], total: u64, pipeline: &Pipeline) -> Result<(), IngestError> {
    let dimensions = vectors.first().map_or(0, Vec::len);
    let count = usize::try_from(pipeline.chunks.max(total)).unwrap_or(usize::MAX);
    let bytes = count.saturating_mul(dimensions).saturating_mul(size_of::<f32>());
    if bytes <= MAX_VECTOR_BYTES {
        return Ok(());
    }
    Err(bad(format!(
        "the vectors of {count} chunks need {bytes} bytes; the limit of a pipeline is {MAX_VECTOR_BYTES}. Set fewer \
         `embedding.dimensions`, or split the pipeline"
    )))
}
