//! Definition files on disk: which files count, how they are read, and how a folder is watched.
//!
//! The only part of this crate that accesses files. The store and the library use it, so that a file means the same in
//! both; how folders are arranged (bundles and tenants, or any tree) is up to them.

mod file;
mod stamp;
mod watcher;

pub use file::{
    BUNDLE_FILE, MAX_BYTES, ReadError, SymbolicLinks, TOOLSET_FILE, file_form, name_and_version,
    read_definition, read_text,
};
pub use stamp::FileStamp;
pub use watcher::{FolderWatcher, SETTLE_DELAY};
