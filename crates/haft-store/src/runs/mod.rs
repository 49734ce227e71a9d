//! Runs of agents. A run is a row with numbered steps; the node that has claimed it writes both.
//!
//! Each claim raises the fence of the run, and every write names the fence of its claim: a node that lost a run to
//! another one writes nothing.

pub(crate) mod claim;
mod create;
mod leave;
pub(crate) mod read;
pub(crate) mod retention;
mod row;
pub(crate) mod signals;
mod steps;

pub use read::Runs;
