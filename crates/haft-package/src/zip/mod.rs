//! ZIP archives of packages: reading hostile ones, and writing reproducible ones.

// `zip` leaves the choice of a deflate implementation to its user: this dependency enables the one in Rust.
use flate2 as _;

mod read;
mod write;

pub use read::{MAX_ARCHIVE, MAX_RATIO, read};
pub use write::{PackError, write};
