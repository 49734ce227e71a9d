//! Retrieval pipelines: their definitions, documents and chunks.

mod api;
mod apply;
mod chunks;
mod contents;
mod documents;
mod ingest;
mod kind;

pub use api::Documents;
pub(crate) use api::pipelines_in;
pub use apply::PipelineChange;
pub use chunks::{IndexChanges, IndexedDocument, StoredChunk};
pub use documents::NewDocument;
pub use ingest::{ClaimedDocument, DocumentChunks, KeptChunk, StoredChunks};
