//! Retrieval pipelines: documents become chunks in the background, and each node searches its own index of them.
//!
//! [`RetrievalHost`] is what a node does: it ingests queued documents, keeps the indexes of the pipelines that are
//! queried, and answers queries. Chunks and documents are in the store. [`crate::pipelines`] checks permissions.

mod embedding;
mod fetch;
mod filter;
mod handle;
mod host;
mod index;
mod indexes;
mod ingest;
mod query;
mod update;

pub use handle::RetrievalHandle;
pub use host::{HostParts, RetrievalHost};
