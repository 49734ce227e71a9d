//! Runs as the API shows them.

use haft_core::Timestamp;
use haft_core::run::{Run, RunStatus, RunStep, RunUsage, StepError};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use haft_platform::runs::{WaitingCall, waiting_calls};

use crate::view::AcceptedWebhook;

/// A run of an agent.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunView {
    id: Uuid,
    /// The slug of the agent.
    #[schema(example = "assistant")]
    agent: String,
    agent_id: Uuid,
    agent_revision: u32,
    status: RunStatus,
    /// The final answer: a text, or a value that fits the output schema.
    #[schema(required)]
    output: Option<Value>,
    /// Why it failed.
    #[schema(required)]
    error: Option<StepError>,
    usage: RunUsage,
    /// The interface that it came through: `rest`, `chat`, `ws`, `openai`, `cli`, `agent_call`.
    #[schema(example = "rest")]
    surface: String,
    /// The name of the token that asked for it.
    requested_by: String,
    #[schema(required)]
    chat_id: Option<Uuid>,
    /// The message of the chat that the answer is written to.
    #[schema(required)]
    message_id: Option<Uuid>,
    /// The tool call that started it.
    #[schema(required)]
    parent_call_id: Option<Uuid>,
    /// The run of the agent above it.
    #[schema(required)]
    parent_run_id: Option<Uuid>,
    created_at: Timestamp,
    #[schema(required)]
    started_at: Option<Timestamp>,
    #[schema(required)]
    finished_at: Option<Timestamp>,
    /// The calls that it waits for; not in lists.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    waiting: Vec<WaitingCall>,
    /// The webhook that its end is delivered to, in the response to its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<AcceptedWebhook>,
}

impl RunView {
    /// Adds the webhook of the run.
    #[must_use]
    pub(crate) fn with_webhook(mut self, webhook: Option<AcceptedWebhook>) -> Self {
        self.webhook = webhook;
        self
    }

    /// Adds the calls that it waits for.
    #[must_use]
    pub(crate) fn with_waiting(mut self, steps: &[RunStep]) -> Self {
        if self.status == RunStatus::AwaitingApproval {
            self.waiting = waiting_calls(steps);
        }
        self
    }
}

impl From<&Run> for RunView {
    fn from(run: &Run) -> Self {
        Self {
            id: run.id.0,
            agent: run.definition.slug.to_string(),
            agent_id: run.agent_id.0,
            agent_revision: run.agent_revision,
            status: run.status,
            output: run.output.clone(),
            error: run.error.as_ref().map(|error| StepError {
                code: error.code.as_str().to_owned(),
                message: error.message.clone(),
            }),
            usage: run.usage.clone(),
            surface: run.surface.clone(),
            requested_by: run.principal.name.to_string(),
            chat_id: run.chat_id.map(|id| id.0),
            message_id: run.message_id.map(|id| id.0),
            parent_call_id: run.parent_call.map(|id| id.0),
            parent_run_id: run.parent_run.map(|id| id.0),
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            waiting: Vec::new(),
            webhook: None,
        }
    }
}
