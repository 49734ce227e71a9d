//! The REST API of haft over the pipeline and the store.

pub mod settings;
