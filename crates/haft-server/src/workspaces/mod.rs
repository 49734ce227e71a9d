//! The workspaces of this node: folders in which calls take turns, and whose every state is stored.

mod edit;
mod host;
mod read;
mod turns;

pub(crate) use edit::{FileEdit, StateChange};
pub(crate) use host::WorkspaceHost;
pub(crate) use read::{FileListing, FileRange};
