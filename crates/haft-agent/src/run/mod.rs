//! One run of an agent: the loop of model and tools.
//!
//! Each step is stored before the next one starts, and the next action follows from the stored steps alone. So a run
//! that was cut off continues with the same code, on any node. [`AgentRun::execute`] is the loop; [`RunHost`] and
//! [`RunStore`](haft_core::run::RunStore) are its surroundings.

mod agent_run;
mod answer_check;
mod ask;
mod batch;
mod budget;
mod call_task;
mod calls;
mod close;
mod context;
mod control;
mod event;
mod events_of;
mod host;
mod instructions;
mod mask;
mod plan;
mod progress;
mod request;
mod result_text;
mod session;
mod state;
mod summary;
mod tokens;
mod tool_lookup;
mod transcript;
mod usage;

pub use agent_run::AgentRun;
pub use control::RunControl;
pub use event::RunEvent;
pub use events_of::{events_of, replay};
pub use host::{BoundTool, EndedCall, RunHost, ToolReply, ToolRequest};
pub use instructions::{missing_variables, render_instructions};
pub use state::run_state;
pub use transcript::{conversation, transcript};
