//! The immutable picture of all tools that the hot path reads, swapped whole on every change.

mod entry;
mod offer;
mod resolve;
mod snapshot;

pub use entry::{Entry, Plan, Which};
pub use offer::Offer;
pub use resolve::ResolveError;
pub use snapshot::{Found, Registry, Snapshot};
