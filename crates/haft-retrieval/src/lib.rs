//! Retrieval over documents: reading, chunking, BM25, embeddings and hybrid ranking.
//!
//! [`read()`] turns the bytes of a document into text with structure, [`chunk()`] cuts it into [`Chunk`]s, [`Index`]
//! ranks chunks by BM25 and [`VectorIndex`] by the cosine of their embeddings; [`Retriever`] combines both. Chunks live
//! elsewhere: an index is rebuilt from them, and [`diff()`] says what a new version of a document changes. Everything
//! here is synchronous except [`Embedder`], knows no network and no database, and bounds what a hostile document costs.

mod analyzer;
mod bm25;
mod chunk;
#[cfg(test)]
mod chunk_tests;
mod diff;
mod document;
mod embedder;
mod filter;
mod fusion;
mod index;
#[cfg(test)]
pub(crate) mod index_tests;
mod inverted;
mod labels;
mod language;
mod metadata;
mod read;
mod retriever;
#[cfg(test)]
mod retriever_tests;
mod top_hits;
mod vectors;

pub use chunk::{Chunk, ChunkError, ChunkOptions, MAX_DOCUMENT_ID, Position, SizeUnit, Source, chunk};
pub use diff::{ChunkDiff, StoredChunk, diff};
pub use document::{Block, BlockKind, Document};
pub use embedder::{EmbedError, Embedder, embed_all};
pub use filter::{Filter, FilterError};
pub use fusion::{RRF_K, fuse};
pub use index::{Hit, Index, IndexError, MAX_QUERY, MAX_TOP_K, SearchRequest};
pub use language::Language;
pub use metadata::{Metadata, MetadataError, MetadataValue};
pub use read::{Format, ReadError, ReadLimits, ReadOptions, read};
pub use retriever::{RetrievalHit, RetrieveError, Retriever};
pub use vectors::{VectorError, VectorIndex};
