//! Code artifacts and their versions.

mod api;

pub use api::{ArtifactNames, NewArtifact};
