//! The immutable picture of all tools that the hot path reads, swapped whole on every change.

mod entry;
mod resolve;
mod snapshot;

pub use entry::{Entry, Plan, Which};
pub use resolve::ResolveError;
pub use snapshot::{Registry, Snapshot};
