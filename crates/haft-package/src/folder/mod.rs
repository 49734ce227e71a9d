//! Packages as folders: reading a local one, and unpacking one in a single step.

mod read;
mod write;

pub use read::read;
pub use write::{UnpackError, remove_leftovers, unpack};
