//! Reading and writing definitions of agents, in every accepted spelling.

mod document;
mod fields;
mod model;
mod rules;
mod team;
mod write;

#[cfg(test)]
mod agent_tests;

pub use document::{MAX_AGENTS, ReadAgent, from_json, read};
pub use model::DEFAULT_MODEL;
pub use write::write_yaml;
