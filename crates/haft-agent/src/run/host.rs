//! What a run needs from its surroundings: tools, calls, and somebody who watches.

use std::time::Duration;

use haft_core::BoxFuture;
use haft_core::Timestamp;
use haft_core::agent::AgentBudget;
use haft_core::call::CallStatus;
use haft_core::id::{ApprovalId, CallId, ToolId};
use haft_core::outcome::CallError;
use haft_core::run::{RunStep, RunUsage};
use serde_json::{Map, Value};

use super::event::RunEvent;
use super::events_of::events_of;
use crate::model::{ImageSource, ToolDefinition};

/// A tool that the agent may call now.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundTool {
    /// What the model sees.
    pub definition: ToolDefinition,
    /// The tool.
    pub id: ToolId,
    /// `bundle:name@version`.
    pub qualified: String,
    /// Whether it has no side effects.
    pub is_pure: bool,
    /// The group whose calls share `max_concurrency`.
    pub concurrency_group: String,
    /// How many calls of the group run at once within one run.
    pub max_concurrency: u32,
}

/// One call of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRequest {
    /// The tool.
    pub tool: ToolId,
    /// The arguments, coerced. The pipeline validates them.
    pub args: Map<String, Value>,
    /// The idempotency key, for tools with side effects: the same for the same call of the same answer, so that a run
    /// that continues never repeats it.
    pub idempotency_key: Option<String>,
    /// The timeout that the agent sets instead of the tool's.
    pub timeout: Option<Duration>,
    /// What the run may still use; child runs share it.
    pub budget: AgentBudget,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolReply {
    /// It has ended.
    Ended(Box<EndedCall>),
    /// It waits until a person decides.
    AwaitingApproval {
        /// The call.
        call_id: CallId,
        /// Its approval.
        approval_id: ApprovalId,
        /// When the approval expires.
        expires_at: Option<Timestamp>,
    },
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedCall {
    /// The recorded call, if there is one.
    pub call_id: Option<CallId>,
    /// How it ended.
    pub status: CallStatus,
    /// The value, or a preview of it with its handle if it is large.
    pub value: Option<Value>,
    /// Images of the result.
    pub images: Vec<ImageSource>,
    /// The error.
    pub error: Option<CallError>,
    /// The usage of agent runs inside the call.
    pub usage: RunUsage,
}

/// The surroundings of a run.
pub trait RunHost: Send + Sync {
    /// Returns the tools that the agent may call now; asked before every request to the model.
    fn tools(&self) -> BoxFuture<'_, Result<Vec<BoundTool>, CallError>>;

    /// Runs a call to its end, or until it has to wait for a person. A call with an idempotency key that was made before
    /// returns the outcome of the first. Dropping the future cancels the call.
    fn call(&self, request: ToolRequest) -> BoxFuture<'_, Result<ToolReply, CallError>>;

    /// Returns what became of a call that waited: `None` if it has not ended.
    fn ended(&self, call: CallId) -> BoxFuture<'_, Result<Option<EndedCall>, CallError>>;

    /// Receives what the run has used so far, before every request and every call; returns what it may use in all, as
    /// far as it shares the budgets of the runs above it. Must not block.
    fn shared_budget(&self, _used: &RunUsage) -> AgentBudget {
        AgentBudget::default()
    }

    /// Shows an event to those who watch; must not block.
    fn emit(&self, event: RunEvent);

    /// Shows the events of a step that is stored; must not block.
    fn emit_step(&self, step: &RunStep) {
        for event in events_of(step) {
            self.emit(event);
        }
    }
}
