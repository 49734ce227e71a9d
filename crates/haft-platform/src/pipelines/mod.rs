//! Retrieval pipelines and their documents: finding and querying them. [`crate::retrieval`] ingests documents and keeps the
//! indexes of a node.

pub mod documents;
mod folder;
mod kind;
mod manage;

pub use manage::{find, query, reingest};
