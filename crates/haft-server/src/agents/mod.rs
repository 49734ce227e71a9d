//! Agents: which tools they have, whether they can run, and the model they talk to.
//!
//! What a run does is in [`crate::runs`]; the loop itself is in `haft-agent`.

mod bind;
mod check;
mod find;
pub(crate) mod manage;
mod model;
mod names;
mod readiness;
mod view;

pub(crate) use bind::{RunsFor, SURFACE, bind};
pub(crate) use check::{Strictness, check, require_publishable, require_valid};
pub(crate) use find::{require_runnable, runnable_agent, visible_agent};
pub(crate) use model::{
    ConfiguredModel, ConfiguredProvider, ModelConnections, configured_models, key_in, providers,
};
pub(crate) use names::{KnownAgent, KnownAgents};
pub(crate) use view::{AgentRevisionView, AgentToolView, AgentView};
