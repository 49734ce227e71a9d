//! The index of one pipeline on this node.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use haft_core::id::DocumentId;
use haft_core::retrieval::{ChunkRecord, EmbeddingModel, RetrievalMode};
use haft_retrieval::{
    Chunk, Filter, Index, IndexError, Language, Metadata, Position, RetrievalHit, RetrieveError, Retriever,
    SearchRequest, VectorIndex,
};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

/// The memory of the vectors of one pipeline.
pub(super) const MAX_VECTOR_BYTES: usize = 1 << 30;
/// What a chunk takes besides its terms and its vector: its id, here and in the vector index.
const CHUNK_OVERHEAD: usize = 256;

/// The index of one pipeline.
pub(super) struct PipelineIndex {
    retriever: RwLock<Retriever>,
    /// The content of the index. Updates hold this lock.
    pub(super) state: tokio::sync::Mutex<IndexState>,
    generation: AtomicI64,
    bytes: AtomicUsize,
    /// When it was last used, in the order of uses.
    pub(super) used: AtomicU64,
}

/// What an index holds.
#[derive(Default)]
pub(super) struct IndexState {
    /// The model of the vectors.
    pub(super) embedding: Option<EmbeddingModel>,
    /// Whether an update ended early, so that what it holds is unknown.
    pub(super) is_broken: bool,
    /// The documents.
    pub(super) documents: HashMap<DocumentId, IndexedChunks>,
}

/// The chunks of a document in an index.
pub(super) struct IndexedChunks {
    /// The generation of the pipeline that they belong to.
    pub(super) generation: i64,
    /// Their ids, each with its size.
    pub(super) chunks: HashMap<String, usize>,
}

/// A step of an update.
pub(super) enum IndexStep {
    /// Adds or replaces chunks of a document.
    Add(Arc<Metadata>, Vec<ChunkRecord>),
    /// Removes chunks.
    Remove(Vec<String>),
    /// Makes everything before it visible. Without it, the update is undone.
    Commit,
}

/// The id of a chunk, and its document and vector; without these, its vector is removed.
type VectorChange = (String, Option<(String, Vec<f32>)>);

/// What a search looks for.
pub(super) struct Search {
    pub(super) query: String,
    pub(super) top_k: usize,
    pub(super) filter: Option<Filter>,
    pub(super) vector: Option<Vec<f32>>,
    pub(super) mode: RetrievalMode,
}

impl PipelineIndex {
    pub(super) fn new() -> Self {
        Self {
            retriever: RwLock::new(Retriever { index: Index::new(), vectors: None }),
            state: tokio::sync::Mutex::default(),
            generation: AtomicI64::new(0),
            bytes: AtomicUsize::new(0),
            used: AtomicU64::new(0),
        }
    }

    /// Returns the generation of the pipeline that the index is complete for.
    pub(super) fn generation(&self) -> i64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns about how much memory it takes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Notes that the index is complete.
    pub(super) fn complete(&self, state: &IndexState, generation: i64) {
        let chunks = state.documents.values().flat_map(|document| document.chunks.values());
        self.bytes.store(self.read().index.memory() + chunks.sum::<usize>(), Ordering::Relaxed);
        self.generation.store(generation, Ordering::Release);
    }

    /// Removes all vectors: those of another model cannot be compared.
    pub(super) fn forget_vectors(&self) {
        self.write().vectors = None;
    }

    /// Searches; call it on a thread that may block.
    pub(super) fn search(&self, search: &Search) -> Result<Vec<RetrievalHit>, RetrieveError> {
        let retriever = self.read();
        let request =
            SearchRequest { query: &search.query, top_k: search.top_k, filter: search.filter.as_ref() };
        if search.mode != RetrievalMode::Embedding {
            return retriever.search(&request, search.vector.as_deref());
        }
        let (Some(vectors), Some(vector)) = (&retriever.vectors, &search.vector) else {
            return Ok(Vec::new());
        };
        let allowed: Option<HashSet<String>> =
            search.filter.as_ref().map(|filter| retriever.index.matching(filter)).transpose()?;
        let is_allowed = |chunk: &str| allowed.as_ref().is_none_or(|allowed| allowed.contains(chunk));
        let hits = vectors.search(vector, search.top_k, is_allowed)?;
        Ok(hits
            .into_iter()
            .map(|hit| RetrievalHit {
                chunk: hit.chunk,
                document: hit.document,
                score: hit.score,
                bm25: None,
                cosine: Some(hit.score),
            })
            .collect())
    }

    /// Applies the steps of an update; call it on a thread that may block.
    pub(super) fn apply(&self, mut steps: Receiver<IndexStep>) -> Result<(), IndexError> {
        // Searches go on meanwhile, and see the update after its commit.
        let retriever = self.read();
        let mut update = retriever.index.update()?;
        let mut vectors: Vec<VectorChange> = Vec::new();
        while let Some(step) = steps.blocking_recv() {
            match step {
                IndexStep::Add(metadata, chunks) => {
                    for chunk in chunks {
                        update.add(&indexed(&chunk, &metadata))?;
                        if let Some(vector) = chunk.embedding {
                            vectors.push((chunk.id, Some((chunk.document.to_string(), vector))));
                        }
                    }
                }
                IndexStep::Remove(ids) => {
                    for id in ids {
                        update.remove(&id);
                        vectors.push((id, None));
                    }
                }
                IndexStep::Commit => {
                    update.commit();
                    drop(retriever);
                    self.apply_vectors(vectors);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn apply_vectors(&self, changes: Vec<VectorChange>) {
        let mut retriever = self.write();
        for (chunk, change) in changes {
            let Some((document, vector)) = change else {
                if let Some(vectors) = &mut retriever.vectors {
                    vectors.remove(&chunk);
                }
                continue;
            };
            let dimensions = vector.len();
            let vectors =
                retriever.vectors.get_or_insert_with(|| VectorIndex::new(dimensions, MAX_VECTOR_BYTES));
            if let Err(error) = vectors.add(&chunk, &document, &vector) {
                // The chunk can still be found by its words.
                tracing::warn!(%error, chunk, "a chunk has no usable vector");
            }
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Retriever> {
        self.retriever.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Retriever> {
        self.retriever.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns about how much memory a chunk takes besides its terms, which the index counts.
pub(super) fn chunk_size(chunk: &ChunkRecord) -> usize {
    let vector = chunk.embedding.as_ref().map_or(0, |vector| size_of_val(vector.as_slice()));
    vector + CHUNK_OVERHEAD
}

/// Returns metadata as the index has it. What was stored is valid.
pub(super) fn index_metadata(metadata: &BTreeMap<String, Value>) -> Metadata {
    let value = serde_json::to_value(metadata).unwrap_or_default();
    serde_json::from_value(value).unwrap_or_default()
}

fn indexed(chunk: &ChunkRecord, metadata: &Metadata) -> Chunk {
    let language = Language::ALL.into_iter().find(|language| language.as_str() == chunk.language);
    Chunk {
        id: chunk.id.clone(),
        document: chunk.document.to_string(),
        ordinal: chunk.ordinal,
        headings: chunk.headings.clone(),
        text: chunk.text.clone(),
        position: Position { bytes: 0..0, lines: None, pages: None },
        hash: String::new(),
        language: language.unwrap_or_default(),
        metadata: metadata.clone(),
    }
}
