//! What a new version of a document changes, so that re-ingest costs what changed.

use std::collections::HashMap;

use crate::Chunk;

/// What the store knows about a chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredChunk {
    /// The id.
    pub id: String,
    /// The hash of headings, text and metadata.
    pub hash: String,
}

/// The difference between the stored chunks of a document and its new ones.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChunkDiff {
    /// New chunks, by their place in the new list: to store, embed and index.
    pub add: Vec<usize>,
    /// Chunks that stay, as stored id and place in the new list: only ordinal and position may have changed.
    pub keep: Vec<(String, usize)>,
    /// The ids of stored chunks to remove.
    pub remove: Vec<String>,
}

impl ChunkDiff {
    /// Tells whether nothing has to be added or removed.
    pub fn is_unchanged(&self) -> bool {
        self.add.is_empty() && self.remove.is_empty()
    }
}

/// Compares the stored chunks of a document with its new ones. Equal hashes are the same chunk; a text that occurs
/// twice is two chunks.
pub fn diff(stored: &[StoredChunk], new: &[Chunk]) -> ChunkDiff {
    let ids: HashMap<&str, usize> =
        new.iter().enumerate().map(|(at, chunk)| (chunk.id.as_str(), at)).collect();
    let mut kept = vec![false; new.len()];
    let mut diff = ChunkDiff::default();
    for chunk in stored {
        let same = ids
            .get(chunk.id.as_str())
            .copied()
            .filter(|at| new.get(*at).is_some_and(|new| new.hash == chunk.hash))
            // Two stored rows of one id would be kept twice.
            .filter(|at| kept.get(*at) == Some(&false));
        if let Some(at) = same {
            if let Some(kept) = kept.get_mut(at) {
                *kept = true;
            }
            diff.keep.push((chunk.id.clone(), at));
        } else {
            diff.remove.push(chunk.id.clone());
        }
    }
    diff.add = kept.iter().enumerate().filter(|(_, kept)| !**kept).map(|(at, _)| at).collect();
    diff
}
