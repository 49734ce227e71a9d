//! The background tasks of the store: change detection, draining the journal, removing old data.

mod definitions;
mod listen;
pub(crate) mod notification;
pub(crate) mod reports;
mod resources;
mod tasks;

pub use tasks::{StoreLoop, WatchTasks};
