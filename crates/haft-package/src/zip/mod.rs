//! ZIP archives of packages: reading hostile ones, and writing reproducible ones.

// `zip` leaves the choice of a deflate implementation to its user: this dependency enables the one in Rust.
use flate2 as _;

mod read;
mod stream;
mod write;

pub use read::{MAX_ARCHIVE, MAX_RATIO, read};
pub use stream::{ArchiveWriter, Unpacked, unpack_into};
pub use write::{PackError, write};
