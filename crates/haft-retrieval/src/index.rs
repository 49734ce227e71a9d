//! The BM25 index over chunks.
//!
//! The index holds terms and ids in memory; texts live in the store, and every node builds its own index from them.
//! Searches read a snapshot and never wait for an update, which replaces the snapshot when it is complete.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, TryLockError};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::filter::{Filter, FilterError};
use crate::inverted::{ChunkTerms, LiveSegment, SegmentBuilder, Snapshot, merge_where_due};
use crate::metadata::{self, MetadataError};
use crate::top_hits::{Candidate, TopHits};
use crate::{Chunk, Language, analyzer, bm25, labels};

/// The maximum length of a query in bytes.
pub const MAX_QUERY: usize = 16 * 1024;
/// The maximum number of hits of a search.
pub const MAX_TOP_K: usize = 1000;
/// The memory that an update may use before it makes a segment of what it collected.
const UPDATE_MEMORY: usize = 32 << 20;

/// A search by words.
#[derive(Debug, Clone, PartialEq)]
pub struct SearchRequest<'a> {
    /// The words to search for.
    pub query: &'a str,
    /// The maximum number of hits.
    pub top_k: usize,
    /// The condition on metadata, if any.
    pub filter: Option<&'a Filter>,
}

/// A chunk that a search found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hit {
    /// The id of the chunk.
    pub chunk: String,
    /// The id of its document.
    pub document: String,
    /// How well it matches; comparable within one search only.
    pub score: f32,
}

/// An index that failed, or a request that it rejects.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The query is too long.
    #[error("`query` has {0} bytes; the limit is {MAX_QUERY}")]
    QueryTooLong(usize),
    /// The number of hits is zero or too large.
    #[error("`top_k` is {0}; use 1 to {MAX_TOP_K}")]
    TopK(usize),
    /// The filter is invalid.
    #[error("invalid filter")]
    Filter(#[from] FilterError),
    /// The metadata of a chunk is invalid.
    #[error("invalid metadata")]
    Metadata(#[from] MetadataError),
    /// Another update is open.
    #[error("the index is being updated")]
    Busy,
}

/// A BM25 index of chunks.
#[derive(Default)]
pub struct Index {
    current: RwLock<Arc<State>>,
    /// Updates hold this lock.
    updating: Mutex<()>,
}

/// What searches read.
#[derive(Debug, Default)]
struct State {
    snapshot: Snapshot,
    /// The languages that chunks have: a query is stemmed for these only.
    languages: Vec<Language>,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("chunks", &self.len()).finish_non_exhaustive()
    }
}

impl Index {
    /// Makes an empty index.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of chunks.
    pub fn len(&self) -> usize {
        self.state().snapshot.len
    }

    /// Tells whether there are no chunks.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns about how many bytes of memory the index takes.
    pub fn memory(&self) -> usize {
        self.state().snapshot.memory
    }

    /// Starts an update; searches see it after [`Update::commit`]. One update is open at a time.
    pub fn update(&self) -> Result<Update<'_>, IndexError> {
        let lock = match self.updating.try_lock() {
            Ok(lock) => lock,
            // An update that panicked left the index as it was.
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(IndexError::Busy),
        };
        let segments = self.state().snapshot.segments.clone();
        Ok(Update { index: self, segments, added: SegmentBuilder::default(), _lock: lock })
    }

    /// Returns the best chunks for a query, best first; chunks of equal scores are in the order of their ids.
    pub fn search(&self, request: &SearchRequest<'_>) -> Result<Vec<Hit>, IndexError> {
        check(request)?;
        let state = self.state();
        let words = analyzer::query_terms(request.query, &state.languages);
        let mut scores = bm25::scores(&state.snapshot, &words).into_iter();
        let mut top = TopHits::new(request.top_k);
        for LiveSegment { segment, .. } in &state.snapshot.segments {
            let allowed =
                request.filter.map(|filter| labels::matching(filter, &segment.labels, segment.len()));
            for (number, score) in (0..).zip(scores.by_ref().take(segment.len())) {
                let is_allowed = || allowed.as_ref().is_none_or(|allowed| allowed.contains(number));
                if score > 0.0 && top.may_accept(score) && is_allowed() {
                    let (chunk, document) = (segment.chunk(number), segment.document(number));
                    top.push(Candidate { score, chunk, document });
                }
            }
        }
        Ok(top.into_hits())
    }

    /// Returns the ids of all chunks whose metadata matches.
    pub fn matching(&self, filter: &Filter) -> Result<HashSet<String>, IndexError> {
        filter.check()?;
        let state = self.state();
        let mut chunks = HashSet::new();
        for live in &state.snapshot.segments {
            let segment = &live.segment;
            let matching = labels::matching(filter, &segment.labels, segment.len());
            let numbers = (0..).take(segment.len());
            let found = numbers.filter(|number| matching.contains(*number) && live.is_live(*number));
            chunks.extend(found.map(|number| segment.chunk(number).to_owned()));
        }
        Ok(chunks)
    }

    /// Returns what searches read now. The lock is held for the copy of a pointer only.
    fn state(&self) -> Arc<State> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

fn check(request: &SearchRequest<'_>) -> Result<(), IndexError> {
    if request.query.len() > MAX_QUERY {
        return Err(IndexError::QueryTooLong(request.query.len()));
    }
    if request.top_k == 0 || request.top_k > MAX_TOP_K {
        return Err(IndexError::TopK(request.top_k));
    }
    Ok(request.filter.map_or(Ok(()), Filter::check)?)
}

/// A set of changes that become visible together; dropped, it changes nothing.
#[derive(Debug)]
pub struct Update<'a> {
    index: &'a Index,
    segments: Vec<LiveSegment>,
    added: SegmentBuilder,
    _lock: MutexGuard<'a, ()>,
}

impl Update<'_> {
    /// Adds a chunk, or replaces the one of the same id.
    pub fn add(&mut self, chunk: &Chunk) -> Result<(), IndexError> {
        metadata::check(&chunk.metadata)?;
        self.remove(&chunk.id);
        self.added.add(ChunkTerms {
            chunk: &chunk.id,
            document: &chunk.document,
            text: text_terms(chunk),
            labels: labels::labels(chunk),
        });
        if self.added.memory() > UPDATE_MEMORY {
            self.segments.push(std::mem::take(&mut self.added).build());
        }
        Ok(())
    }

    /// Removes a chunk.
    pub fn remove(&mut self, chunk: &str) {
        self.segments.iter_mut().for_each(|segment| segment.remove_chunk(chunk));
        self.added.remove(chunk);
    }

    /// Removes all chunks of a document.
    pub fn remove_document(&mut self, document: &str) {
        self.segments.iter_mut().for_each(|segment| segment.remove_document(document));
        self.added.remove_document(document);
    }

    /// Makes the changes visible.
    pub fn commit(mut self) {
        self.segments.push(self.added.build());
        let snapshot = Snapshot::new(merge_where_due(self.segments));
        let is_used = |language: &Language| snapshot.has_label(&labels::language_term(*language));
        let languages = Language::ALL.into_iter().filter(is_used).collect();
        let state = Arc::new(State { snapshot, languages });
        let mut current = self.index.current.write().unwrap_or_else(PoisonError::into_inner);
        let replaced = std::mem::replace(&mut *current, state);
        // Freeing a large index takes time; searches need not wait for it.
        drop(current);
        drop(replaced);
    }
}

fn text_terms(chunk: &Chunk) -> Vec<String> {
    let headings = chunk.headings.iter().flat_map(|heading| analyzer::terms(heading, chunk.language));
    headings.chain(analyzer::terms(&chunk.text, chunk.language)).collect()
}
