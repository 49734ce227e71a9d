//! Agents: their definitions in the database and in files, revision by revision.

pub(crate) mod apply;
pub(crate) mod files;
pub(crate) mod read;
mod revisions;
pub(crate) mod write;
