//! Agents: which tools they have, whether they can run, and the model they talk to.
//!
//! What a run does is in [`crate::runs`]; the loop itself is in `haft-agent`.

mod bind;
mod check;
mod find;
pub mod manage;
mod model;
mod names;
mod readiness;

pub use bind::{Binding, RunsFor, SURFACE, bind};
pub use check::{Strictness, check, require_publishable, require_valid};
pub use find::{require_runnable, runnable_agent, visible_agent};
pub use model::{
    ConfiguredModel, ConfiguredProvider, ModelConnections, configured_models, key_in, providers,
};
pub use names::{KnownAgent, KnownAgents};
pub use readiness::fault;
