//! The workspaces of this node: folders in which calls take turns, and whose every state is stored.

mod archive;
mod edit;
mod host;
mod read;
mod shared_packs;
mod turns;

pub use edit::{Expected, FileEdit, StateChange};
pub use host::{WORKSPACES, WorkspaceHost};
pub use read::{FileListing, FileRange};
