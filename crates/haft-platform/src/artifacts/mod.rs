//! Code artifacts, for executors and routes.

mod host;
mod manage;
mod usage;

pub use host::{ArtifactHandle, ArtifactHost};
pub use manage::{ArtifactFields, check_source, create, delete, update};
