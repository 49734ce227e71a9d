//! Tools: finding, creating, changing and deleting them, their life cycle and their revisions.

pub mod broken_file;
mod change;
pub mod check;
mod filter;
mod find;
mod lifecycle;
mod revisions;

pub use change::{
    Deletion, bundle_slug, changeable, check_switchable, delete, deleted, restore, set_enabled, store,
    undelete, update,
};
pub use check::file_warnings;
pub use filter::{ListItem, ToolFilter};
pub use find::{ToolSource, find, resolve, source};
pub use lifecycle::{NewDeprecation, deprecate, publish, relabel, unpublishable};
pub use revisions::{default_base, differences, find_revision};
