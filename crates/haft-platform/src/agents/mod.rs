//! Agents: which tools they have, whether they can run, and the model they talk to.
//!
//! What a run does is in [`crate::runs`]; the loop itself is in `haft-agent`.

mod bind;
mod check;
mod configured_models;
mod find;
mod kind;
pub mod manage;
mod readiness;
mod target;

pub use bind::{Binding, RunsFor, SURFACE, bind};
pub use check::{Strictness, check, require_publishable, require_valid};
pub use configured_models::{
    ConfiguredModel, ConfiguredProvider, configured_models, key_warnings, providers,
};
pub use find::{require_runnable, runnable_agent, visible_agent};
pub use readiness::fault;
pub use target::{target_of, target_problem};
