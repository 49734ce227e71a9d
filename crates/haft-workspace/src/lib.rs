//! Content-addressed snapshots of folders.
//!
//! A [`Workspace`] is a folder that programs change. [`Workspace::snapshot`] stores its present state and returns a
//! [`Manifest`]; [`Workspace::checkout`] brings the folder to the state of a manifest. Both cost what changed: files
//! whose size and times are those of the last snapshot are not read, and equal folders are neither visited nor stored
//! again.
//!
//! A snapshot writes one file, its [`pack`](Packs): the new contents and the new folder nodes, compressed in blocks. A
//! folder node lists names, hashes and extents, so a manifest is no more than the extent of its root.
//!
//! Everything here blocks: call it from a thread that may.

mod checkout;
mod diff;
mod error;
mod folder;
mod gc;
mod hash;
mod limits;
mod manifest;
mod node;
mod pack;
mod packs;
mod reader;
mod scan;
mod snapshot;
mod state;
mod workspace;

pub use diff::{Change, ChangeKind, diff};
pub use error::{WorkspaceError, WorkspaceResult};
pub use gc::{GcReport, gc};
pub use hash::Hash;
pub use limits::Limits;
pub use manifest::{FileEntry, Listing, Manifest, WalkStep, find, list, read_file, walk};
pub use node::{Content, Extent, PackId};
pub use packs::{LocalPacks, Packs};
pub use snapshot::Snapshot;
pub use workspace::Workspace;
