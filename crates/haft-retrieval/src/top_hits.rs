//! The best of many hits.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::Hit;

/// Keeps the hits with the greatest scores; of equal scores, those whose chunk comes first by id.
#[derive(Debug)]
pub(crate) struct TopHits<'a> {
    limit: usize,
    best: BinaryHeap<Candidate<'a>>,
}

/// A chunk with its score. The greatest is the worst, so that the heap's top is the one to replace.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    /// The score.
    pub(crate) score: f32,
    /// The id of the chunk.
    pub(crate) chunk: &'a str,
    /// The id of its document.
    pub(crate) document: &'a str,
}

impl<'a> TopHits<'a> {
    /// Makes a list for at most `limit` hits.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, best: BinaryHeap::new() }
    }

    /// Tells whether a chunk of this score may be among the best, as ids decide between equal scores.
    pub(crate) fn may_accept(&self, score: f32) -> bool {
        self.best.len() < self.limit || self.best.peek().is_some_and(|worst| score >= worst.score)
    }

    /// Adds a chunk if it is among the best so far.
    pub(crate) fn push(&mut self, candidate: Candidate<'a>) {
        self.best.push(candidate);
        if self.best.len() > self.limit {
            self.best.pop();
        }
    }

    /// Returns the hits, best first.
    pub(crate) fn into_hits(self) -> Vec<Hit> {
        let hit = |candidate: Candidate<'_>| Hit {
            chunk: candidate.chunk.to_owned(),
            document: candidate.document.to_owned(),
            score: candidate.score,
        };
        self.best.into_sorted_vec().into_iter().map(hit).collect()
    }
}

impl Ord for Candidate<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        other.score.total_cmp(&self.score).then_with(|| self.chunk.cmp(other.chunk))
    }
}

impl PartialOrd for Candidate<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate<'_> {}
