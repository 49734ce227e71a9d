//! ZIP archives of packages: reading hostile ones, and writing reproducible ones.

mod read;
mod write;

pub use read::{MAX_ARCHIVE, MAX_RATIO, read};
pub use write::write;
