//! Runs of agents: started here or claimed from the store, run on this node, watched and cancelled from any node.
//!
//! The loop of a run is in `haft-agent`; this module gives it tools, a model and a store, and shows what happens to those
//! who watch. The answer of a run in a chat is written by [`crate::answers`] before the run counts as ended.

mod agent_call;
mod agent_result;
mod claim;
mod engine;
mod execute;
mod feed;
mod host;
mod launch;
mod shared_budget;
mod start;
mod store;
mod waiting;
mod watch;

pub use agent_call::{AgentCallExecutor, messages_of};
pub use claim::claim_runs;
pub use engine::RunEngine;
pub use start::{RunOverrides, StartRun};
pub use waiting::{WaitingCall, waiting_calls};
pub use watch::{NumberedEvent, follow, follow_after, watch, watch_numbered};
