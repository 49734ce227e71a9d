//! The workspaces of this node: folders that one call at a time changes, and whose every state is stored.

mod archive;
mod archive_permits;
mod edit;
mod host;
mod locks;
mod read;
mod shared_packs;

pub use edit::{Expected, FileEdit, StateChange};
pub use host::WorkspaceHost;
pub use read::{FileListing, FileRange, ListedFile, ListedKind};
