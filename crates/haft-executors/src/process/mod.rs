//! What all tools that run a process share: environment, limits, and the conversion to an outcome.

mod environment;
mod lines;
mod outcome;
mod runner;
mod slots;
mod syntax;

pub(crate) use environment::{Environment, check_size, declared, required, texts, workspace_bind};
pub(crate) use lines::OutputLines;
pub(crate) use outcome::{ProcessEnd, ValueSource, network_hint, outcome};
pub(crate) use runner::{Job, STOP_GRACE, level, sandbox_error};
pub use runner::{ProcessSettings, Processes};
pub(crate) use slots::{Account, ProcessSlot};
pub(crate) use syntax::{BashSource, not_checked};
