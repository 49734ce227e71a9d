//! The executors of `file_read` and `file_write`: files inside named roots.
//!
//! A path is resolved by the kernel, from the handle of the root and never above it (`openat2` with
//! `RESOLVE_BENEATH`): neither `..`, nor absolute paths, nor symbolic links lead out, also not one that is
//! swapped in between. No path is ever compared as a text, and no path of the host is told to anyone.
//!
//! Decisions of this module:
//! - Links that stay inside the root are followed when reading; a write never goes through a link.
//! - Only regular files are read and replaced; nothing here waits for a pipe or a device.
//! - A write is whole or not at all: a new file beside the old one, synced, renamed over it.

mod append;
mod beneath;
mod error;
mod executor;
mod list;
mod media;
mod read;
mod roots;
mod work;
mod write;

pub use append::AppendOptions;
pub use executor::{FileReadExecutor, FileWriteExecutor};
pub use list::ListOptions;
pub use roots::{Files, Root, RootsError};
