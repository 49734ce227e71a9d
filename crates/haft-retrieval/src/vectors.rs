//! Exact search by cosine over vectors in memory.

use std::collections::HashMap;

use thiserror::Error;

use crate::Hit;
use crate::top_hits::{Candidate, TopHits};

/// Normalised vectors by chunk, of one length, in one allocation.
///
/// Exact search reads every vector: 100,000 chunks of 768 dimensions are 300 MB and some 30 ms. The memory is bounded.
#[derive(Debug)]
pub struct VectorIndex {
    dimensions: usize,
    max_bytes: usize,
    rows: Vec<Row>,
    values: Vec<f32>,
    places: HashMap<String, usize>,
}

#[derive(Debug)]
struct Row {
    chunk: String,
    document: String,
}

/// A vector that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum VectorError {
    /// The vector has another length than the index.
    #[error("vector has {actual} dimensions; the index has {expected}")]
    Dimensions {
        /// The dimensions of the index.
        expected: usize,
        /// The dimensions of the vector.
        actual: usize,
    },
    /// The vector has no direction.
    #[error("vector is zero or has values that are not finite")]
    NotNormal,
    /// The vectors need more memory than allowed.
    #[error("vectors need more than {0} bytes of memory; embed fewer chunks or raise the limit")]
    Memory(usize),
}

impl VectorIndex {
    /// Makes an index for vectors of a length, which holds at most `max_bytes` of vectors.
    pub fn new(dimensions: usize, max_bytes: usize) -> Self {
        Self { dimensions, max_bytes, rows: Vec::new(), values: Vec::new(), places: HashMap::new() }
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Tells whether there are no vectors.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the length of the vectors.
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Adds the vector of a chunk, or replaces it.
    pub fn add(&mut self, chunk: &str, document: &str, vector: &[f32]) -> Result<(), VectorError> {
        let vector = self.normalized(vector)?;
        if let Some(place) = self.places.get(chunk).copied() {
            let start = place * self.dimensions;
            if let Some(values) = self.values.get_mut(start..start + self.dimensions) {
                values.copy_from_slice(&vector);
            }
            return Ok(());
        }
        if (self.values.len() + self.dimensions).saturating_mul(size_of::<f32>()) > self.max_bytes {
            return Err(VectorError::Memory(self.max_bytes));
        }
        self.places.insert(chunk.to_owned(), self.rows.len());
        self.rows.push(Row { chunk: chunk.to_owned(), document: document.to_owned() });
        self.values.extend_from_slice(&vector);
        Ok(())
    }

    /// Removes the vector of a chunk; tells whether there was one.
    pub fn remove(&mut self, chunk: &str) -> bool {
        let Some(place) = self.places.remove(chunk) else { return false };
        // The last row moves into the gap.
        let last = self.rows.len() - 1;
        self.rows.swap_remove(place);
        if let Some(moved) = self.rows.get(place) {
            self.places.insert(moved.chunk.clone(), place);
        }
        self.values.copy_within(last * self.dimensions.., place * self.dimensions);
        self.values.truncate(last * self.dimensions);
        true
    }

    /// Removes all vectors of a document; returns their number.
    pub fn remove_document(&mut self, document: &str) -> usize {
        let chunks: Vec<String> =
            self.rows.iter().filter(|row| row.document == document).map(|row| row.chunk.clone()).collect();
        chunks.iter().filter(|chunk| self.remove(chunk)).count()
    }

    /// Returns the `top_k` chunks nearest to a vector among those that `is_allowed` accepts; the score is the cosine.
    pub fn search(
        &self,
        vector: &[f32],
        top_k: usize,
        is_allowed: impl Fn(&str) -> bool,
    ) -> Result<Vec<Hit>, VectorError> {
        let vector = self.normalized(vector)?;
        let mut top = TopHits::new(top_k);
        for (row, values) in self.rows.iter().zip(self.values.chunks_exact(self.dimensions)) {
            let score: f32 = values.iter().zip(&vector).map(|(a, b)| a * b).sum();
            if top.may_accept(score) && is_allowed(&row.chunk) {
                top.push(Candidate { score, chunk: &row.chunk, document: &row.document });
            }
        }
        Ok(top.into_hits())
    }

    fn normalized(&self, vector: &[f32]) -> Result<Vec<f32>, VectorError> {
        if vector.len() != self.dimensions || vector.is_empty() {
            return Err(VectorError::Dimensions { expected: self.dimensions, actual: vector.len() });
        }
        let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        if !norm.is_finite() || norm < f64::from(f32::MIN_POSITIVE) {
            return Err(VectorError::NotNormal);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a normalised component is between -1 and 1")]
        let scale = |value: &f32| (f64::from(*value) / norm) as f32;
        Ok(vector.iter().map(scale).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(index: &VectorIndex, vector: &[f32], top_k: usize) -> Vec<String> {
        index.search(vector, top_k, |_| true).unwrap().into_iter().map(|hit| hit.chunk).collect()
    }

    #[test]
    fn the_nearest_vectors_come_first() {
        let mut index = VectorIndex::new(2, 1 << 20);
        for (chunk, vector) in [("east", [2.0, 0.0]), ("north", [0.0, 3.0]), ("north_east", [1.0, 1.0])] {
            index.add(chunk, "map", &vector).unwrap();
        }
        assert_eq!(ids(&index, &[1.0, 0.1], 2), ["east", "north_east"]);
        assert_eq!(ids(&index, &[1.0, 0.1], 0), Vec::<String>::new());
        let score = index.search(&[5.0, 0.0], 1, |_| true).unwrap()[0].score;
        assert!((score - 1.0).abs() < 1e-6);
        let filtered = index.search(&[1.0, 0.0], 5, |chunk| chunk == "north").unwrap();
        assert_eq!(filtered.len(), 1);
    }

    #[test]
    fn removed_and_replaced_vectors_are_gone() {
        let mut index = VectorIndex::new(2, 1 << 20);
        index.add("a", "one", &[1.0, 0.0]).unwrap();
        index.add("b", "two", &[0.0, 1.0]).unwrap();
        index.add("c", "two", &[1.0, 1.0]).unwrap();
        assert!(index.remove("a"));
        assert!(!index.remove("a"));
        assert_eq!(ids(&index, &[1.0, 0.0], 5), ["c", "b"]);
        index.add("b", "two", &[1.0, 0.0]).unwrap();
        assert_eq!(ids(&index, &[1.0, 0.0], 5), ["b", "c"]);
        assert_eq!(index.remove_document("two"), 2);
        assert!(index.is_empty());
    }

    #[test]
    fn bad_vectors_and_too_many_are_rejected() {
        let mut index = VectorIndex::new(2, 16);
        let dimensions = VectorError::Dimensions { expected: 2, actual: 3 };
        assert_eq!(index.add("a", "d", &[1.0; 3]), Err(dimensions));
        assert_eq!(index.add("a", "d", &[0.0; 2]), Err(VectorError::NotNormal));
        assert_eq!(index.add("a", "d", &[f32::NAN, 1.0]), Err(VectorError::NotNormal));
        index.add("a", "d", &[1.0, 0.0]).unwrap();
        index.add("b", "d", &[1.0, 0.0]).unwrap();
        assert_eq!(index.add("c", "d", &[1.0, 0.0]), Err(VectorError::Memory(16)));
        index.add("b", "d", &[0.0, 1.0]).unwrap();
    }
}
