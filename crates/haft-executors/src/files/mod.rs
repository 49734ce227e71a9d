//! The executors of `file_read` and `file_write`: files inside named roots.
//!
//! The kernel resolves a path beneath the handle of the root (`openat2` with `RESOLVE_BENEATH`): neither `..`, nor
//! absolute paths, nor symbolic links lead out, not even one that is swapped in during the lookup. Paths are never
//! compared as text, and no path of the host appears in an error.
//!
//! Decisions of this module:
//! - Links that stay inside the root are followed when reading; a write never goes through a link.
//! - Only regular files are read and replaced; nothing here waits for a pipe or a device.
//! - A write is atomic: a temporary file is written, synced, and renamed over the old one.

mod append;
mod beneath;
pub mod direct;
mod error;
mod executor;
mod list;
mod media;
mod read;
mod roots;
mod small;
mod work;
mod write;

pub use append::AppendOptions;
pub use executor::{FileReadExecutor, FileWriteExecutor};
pub use list::ListOptions;
pub use roots::{Files, Root, RootsError, WORKSPACE};
pub(crate) use small::{SmallFileError, read_small};
