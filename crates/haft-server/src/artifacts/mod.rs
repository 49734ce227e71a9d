//! Code artifacts, for executors and routes.

mod host;
mod manage;
mod usage;

pub(crate) use host::{ArtifactHandle, ArtifactHost};
pub(crate) use manage::{ArtifactFields, check_source, create, delete, update};
