//! Code artifacts, for executors and routes.

mod host;
mod usage;

pub(crate) use host::{ArtifactHandle, ArtifactHost};
pub(crate) use usage::tools_using;
