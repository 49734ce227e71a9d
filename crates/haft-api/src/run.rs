//! Runs of agents.

use std::borrow::Cow;

use haft_core::Timestamp;
use haft_core::run::{Run, RunStatus, RunStep, RunUsage, StepError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::call::AcceptedWebhook;

/// A run of an agent.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Run)]
pub struct RunView {
    pub id: Uuid,
    /// The slug of the agent.
    #[schema(example = "assistant")]
    pub agent: String,
    pub agent_id: Uuid,
    pub agent_revision: u32,
    pub status: RunStatus,
    /// The final answer: a text, or a value that matches the output schema.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub output: Option<Value>,
    /// Why it failed.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub error: Option<StepError>,
    pub usage: RunUsage,
    /// The interface that it came through: `rest`, `chat`, `ws`, `openai`, `cli`, `agent_call`.
    #[schema(example = "rest")]
    pub surface: String,
    /// The name of the requesting token.
    pub requested_by: String,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub chat_id: Option<Uuid>,
    /// The message of the chat that the answer is written to.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub message_id: Option<Uuid>,
    /// The tool call that started it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub parent_call_id: Option<Uuid>,
    /// The run of the agent above it.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub parent_run_id: Option<Uuid>,
    pub created_at: Timestamp,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub started_at: Option<Timestamp>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub finished_at: Option<Timestamp>,
    /// The calls that it waits for; not in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingCall>,
    /// The webhook that receives its end; only in the response that starts the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<AcceptedWebhook>,
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

impl RunView {
    /// Adds the webhook of the run.
    #[must_use]
    pub fn with_webhook(mut self, webhook: Option<AcceptedWebhook>) -> Self {
        self.webhook = webhook;
        self
    }
}

/// A call that a run waits for.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[schema(as = WaitingRunCall)]
pub struct WaitingCall {
    pub approval_id: Uuid,
    pub call_id: Uuid,
    /// `bundle:name@version`.
    pub tool: String,
    #[schema(value_type = Value)]
    pub args: Value,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub expires_at: Option<Timestamp>,
}

/// A page of runs.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RunList {
    pub runs: Vec<RunView>,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// The steps of a run.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct StepList {
    pub steps: Vec<RunStep>,
    /// The number to continue after, if there may be more steps.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_after: Option<u32>,
}

/// A run whose cancellation was requested.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelledRun {
    pub run_id: Uuid,
    pub status: RunStatus,
    #[schema(example = "cancellation requested")]
    pub message: Cow<'static, str>,
}
