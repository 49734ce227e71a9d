//! The immutable picture of all tools that the hot path reads, swapped whole on every change.

mod entry;
mod offer;
mod resolve;
mod snapshot;

pub use entry::{CompiledTool, Entry, RevisionSelector};
pub use offer::ToolOffer;
pub use resolve::ResolveError;
pub use snapshot::{Registry, ResolvedTool, Snapshot};
