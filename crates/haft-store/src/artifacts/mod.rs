//! Code artifacts and their versions.

mod api;
mod apply;

pub use api::{ArtifactNames, NewArtifact};
pub use apply::{ArtifactChange, ArtifactHead};
