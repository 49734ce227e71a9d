//! Retrieval pipelines: documents become chunks in the background, and each node searches its own index of them.
//!
//! [`RetrievalHost`] is what a node does: it ingests queued documents, keeps the indexes of the pipelines that are
//! queried, and answers queries. Chunks and documents are in the store.

mod embedding;
mod fetch;
mod filter;
mod folder;
mod handle;
mod host;
mod index;
mod indexes;
mod ingest;
pub(crate) mod multipart;
mod names;
mod query;
mod update;

pub(crate) use folder::{FolderFile, read_folder};
pub(crate) use handle::RetrievalHandle;
pub(crate) use host::{HostParts, RetrievalHost};
pub(crate) use names::KnownNames;
