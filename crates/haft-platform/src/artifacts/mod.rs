//! Code artifacts: their definitions and checks. [`crate::artifact_host`] has their state on this node.

mod kind;
mod manage;

pub use manage::{ArtifactFields, check_source};
