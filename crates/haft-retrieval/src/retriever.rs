//! Search by words, by meaning, or both.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::fusion;
use crate::index::{Hit, Index, IndexError, MAX_TOP_K, SearchRequest};
use crate::vectors::{VectorError, VectorIndex};

/// How many candidates of each ranking are combined, as a multiple of `top_k`.
const CANDIDATES: usize = 5;
/// The minimum number of candidates.
const MIN_CANDIDATES: usize = 50;

/// A BM25 index, and vectors if there is an embedding model.
#[derive(Debug)]
pub struct Retriever {
    /// The ranking by words.
    pub index: Index,
    /// The ranking by meaning.
    pub vectors: Option<VectorIndex>,
}

/// A chunk that was found, with the scores of both rankings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetrievalHit {
    /// The id of the chunk.
    pub chunk: String,
    /// The id of its document.
    pub document: String,
    /// The score that orders the hits: BM25, or the fused score of a hybrid search.
    pub score: f32,
    /// The BM25 score, if the words matched.
    pub bm25: Option<f32>,
    /// The cosine, if the chunk is near in meaning.
    pub cosine: Option<f32>,
}

/// A search that failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RetrieveError {
    /// The BM25 index failed or rejected the request.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// The vector of the query does not fit.
    #[error("invalid query embedding")]
    Vector(#[from] VectorError),
}

impl Retriever {
    /// Returns the best chunks. With the embedding of the query and with vectors, the two rankings are fused; otherwise
    /// BM25 decides alone.
    pub fn search(
        &self,
        request: &SearchRequest<'_>,
        query_vector: Option<&[f32]>,
    ) -> Result<Vec<RetrievalHit>, RetrieveError> {
        let Some((vectors, vector)) =
            self.vectors.as_ref().filter(|vectors| !vectors.is_empty()).zip(query_vector)
        else {
            let hits = self.index.search(request)?;
            return Ok(hits
                .into_iter()
                .map(|hit| RetrievalHit::new(&hit, hit.score))
                .map(RetrievalHit::lexical)
                .collect());
        };
        let candidates = request.top_k.saturating_mul(CANDIDATES).clamp(MIN_CANDIDATES, MAX_TOP_K);
        // The request is checked with its own `top_k` first.
        let depth = if request.top_k == 0 || request.top_k > MAX_TOP_K { request.top_k } else { candidates };
        let lexical = self.index.search(&SearchRequest { top_k: depth, ..request.clone() })?;
        let allowed = request.filter.map(|filter| self.index.matching(filter)).transpose()?;
        let is_allowed = |chunk: &str| allowed.as_ref().is_none_or(|allowed| allowed.contains(chunk));
        let semantic = vectors.search(vector, candidates, is_allowed)?;
        Ok(combine(&lexical, &semantic, request.top_k))
    }
}

fn combine(lexical: &[Hit], semantic: &[Hit], top_k: usize) -> Vec<RetrievalHit> {
    let ids = |hits: &[Hit]| hits.iter().map(|hit| hit.chunk.clone()).collect::<Vec<_>>();
    let (lexical_ids, semantic_ids) = (ids(lexical), ids(semantic));
    let rankings = [
        lexical_ids.iter().map(String::as_str).collect::<Vec<_>>(),
        semantic_ids.iter().map(String::as_str).collect::<Vec<_>>(),
    ];
    let bm25: HashMap<&str, &Hit> = lexical.iter().map(|hit| (hit.chunk.as_str(), hit)).collect();
    let cosine: HashMap<&str, &Hit> = semantic.iter().map(|hit| (hit.chunk.as_str(), hit)).collect();
    let hit = |(chunk, score): (String, f32)| {
        let (bm25, cosine) = (bm25.get(chunk.as_str()), cosine.get(chunk.as_str()));
        let mut hit = RetrievalHit::new(bm25.or(cosine)?, score);
        hit.bm25 = bm25.map(|hit| hit.score);
        hit.cosine = cosine.map(|hit| hit.score);
        Some(hit)
    };
    fusion::fuse(&rankings, top_k).into_iter().filter_map(hit).collect()
}

impl RetrievalHit {
    fn new(hit: &Hit, score: f32) -> Self {
        Self { chunk: hit.chunk.clone(), document: hit.document.clone(), score, bm25: None, cosine: None }
    }

    fn lexical(mut self) -> Self {
        self.bm25 = Some(self.score);
        self
    }
}
