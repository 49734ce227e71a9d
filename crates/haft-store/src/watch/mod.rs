//! The tasks that run beside the store: noticing changes, moving calls, removing what is old.

mod files;
mod listen;
mod tasks;

pub use tasks::WatchTasks;
