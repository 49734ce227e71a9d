//! Tools: finding, creating, changing and deleting them, their life cycle and their revisions.

pub(crate) mod broken_file;
mod change;
pub(crate) mod check;
mod filter;
mod find;
mod lifecycle;
mod revisions;

pub(crate) use change::{
    bundle_slug, changeable, check_switchable, delete, restore, set_enabled, store, update,
};
pub(crate) use check::file_warnings;
pub(crate) use filter::{ListItem, ToolFilter};
pub(crate) use find::{ToolSource, find, resolve, source};
pub(crate) use lifecycle::{NewDeprecation, deprecate, publish, relabel, unpublishable};
pub(crate) use revisions::{FieldDifference, compare, default_base, differences, find_revision};
