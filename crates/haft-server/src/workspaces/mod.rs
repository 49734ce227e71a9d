//! The workspaces of this node: folders in which calls take turns, and whose every state is stored.

mod edit;
mod host;
mod read;
mod shared_packs;
mod turns;

pub(crate) use edit::{FileEdit, StateChange};
pub(crate) use host::{WORKSPACES, WorkspaceHost};
pub(crate) use read::{FileListing, FileRange};
