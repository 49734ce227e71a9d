//! What runs beside the handling of requests: named loops, each a task of its own that is restarted when it fails.

mod loops;
mod supervisor;

pub use loops::BackgroundTasks;
pub use supervisor::{Importance, LoopSpec, LoopStates, Supervisor};

#[cfg(test)]
mod tests;
