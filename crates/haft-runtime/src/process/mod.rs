//! What all tools that run a process share: the environment, the limits, and the way back to an outcome.

mod environment;
mod lines;
mod outcome;
mod places;
mod runner;
mod syntax;

pub(crate) use environment::{Environment, check_size, declared, required, texts};
pub(crate) use lines::Lines;
pub(crate) use outcome::{End, Spoken, outcome};
pub(crate) use places::{Account, Turn};
pub(crate) use runner::{Job, STOPS_WITHIN, refused};
pub use runner::{ProcessSettings, Processes};
pub(crate) use syntax::{Reading, not_checked};
