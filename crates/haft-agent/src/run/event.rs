//! What watchers of a run see, as it happens.

use haft_core::Timestamp;
use haft_core::agent::AgentDefinition;
use haft_core::call::CallStatus;
use haft_core::id::{ApprovalId, CallId, RunId};
use haft_core::run::{RunStatus, RunUsage, StepError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One event of a run. Events other than deltas follow from the stored steps, so a watcher on another node sees the same
/// run without the deltas.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum RunEvent {
    /// The run starts, or continues.
    Start {
        /// The run.
        run_id: RunId,
        /// The slug of the agent.
        agent: String,
    },
    /// More text of the answer.
    TextDelta {
        /// The text.
        text: String,
    },
    /// More text of the reasoning.
    ReasoningDelta {
        /// The text.
        text: String,
    },
    /// An answer of the model is complete and stored.
    Answer {
        /// The number of the step.
        step: u32,
        /// The model.
        model: String,
        /// The text of the answer.
        text: String,
        /// The reasoning before it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        reasoning: String,
        /// Its token usage and cost.
        usage: RunUsage,
    },
    /// A tool call starts, ends or waits.
    ToolUse {
        /// The number of the step with the answer that has the call.
        answer: u32,
        /// The index of the call in the answer.
        index: u32,
        /// The id that the model gave the call.
        id: String,
        /// The name that the model used.
        name: String,
        /// The tool, `bundle:name@version`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        /// The arguments.
        args: Value,
        /// `running`, `awaiting_approval`, or the final status.
        status: CallStatus,
        /// The recorded call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<CallId>,
        /// The value, or its preview.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StepError>,
        /// How long it took, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<f64>,
    },
    /// A call waits for approval.
    ApprovalRequest {
        /// The approval.
        approval_id: ApprovalId,
        /// The call.
        call_id: CallId,
        /// The id that the model gave the call.
        id: String,
        /// The tool, `bundle:name@version`.
        tool: String,
        /// The arguments.
        args: Value,
        /// When the approval expires.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        expires_at: Option<Timestamp>,
    },
    /// An approval was decided.
    ApprovalDecided {
        /// The approval.
        approval_id: ApprovalId,
        /// The call.
        call_id: CallId,
        /// Whether it was approved.
        approved: bool,
    },
    /// The conversation was shortened to fit the context window.
    Shortened {
        /// How many results were replaced by their handles.
        results: usize,
        /// Whether earlier messages were replaced by a summary.
        summarised: bool,
    },
    /// The model is asked to correct its answer.
    Correction {
        /// The text for the model.
        text: String,
    },
    /// The run ended or waits for approval.
    End {
        /// The run.
        run_id: RunId,
        /// The status.
        status: RunStatus,
        /// The final answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
        /// The error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<StepError>,
        /// The token usage and cost of the run.
        usage: RunUsage,
    },
}

impl RunEvent {
    /// Returns the first event of a run.
    pub fn start(run: RunId, agent: &AgentDefinition) -> Self {
        Self::Start { run_id: run, agent: agent.slug.to_string() }
    }
}
