//! Runs of agents: what is stored of them, step by step.
//!
//! A run is a row with numbered steps that never change. What happens next follows from the steps alone, so a run that
//! was cut off continues from them on any node.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::BoxFuture;
use crate::Timestamp;
use crate::agent::{AgentBudget, AgentDefinition};
use crate::catalog::StoreError;
use crate::id::{AgentId, ApprovalId, CallId, ChatId, MessageId, RunId, WebhookId};
use crate::name::AgentSlug;
use crate::outcome::CallError;
use crate::principal::Principal;
use crate::runnable::Mode;

/// The most runs of agents inside one another.
pub const MAX_RUN_DEPTH: u32 = 5;
/// The most steps of one run.
pub const MAX_STEPS: u32 = 20_000;

/// The state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Stored, not started; or cut off, to be continued.
    Pending,
    /// A node runs it.
    Running,
    /// It waits until people have decided about calls.
    AwaitingApproval,
    /// It ended with an answer.
    Success,
    /// It failed.
    Error,
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Running, Self::AwaitingApproval, Self::Success, Self::Error, Self::Cancelled];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Success => "success",
            Self::Error => "error",
            Self::Cancelled => "cancelled",
        }
    }

    /// Parses the name that [`RunStatus::as_str`] returns.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns whether the run has ended.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Success | Self::Error | Self::Cancelled)
    }
}

impl fmt::Display for RunStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One run of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The agent.
    pub agent_id: AgentId,
    /// The revision of the agent that runs.
    pub agent_revision: u32,
    /// That revision.
    pub definition: Arc<AgentDefinition>,
    /// Who asked for it; the tools are called on this principal's behalf.
    pub principal: Arc<Principal>,
    /// The interface that it came through: `rest`, `chat`, `ws`, `openai`, `cli`, `agent_call`.
    pub surface: String,
    /// The mode.
    pub mode: Mode,
    /// The conversation before the first step: an array of model messages (`haft_agent::model::ModelMessage`).
    pub input: Value,
    /// The values of variables in the instructions.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub variables: BTreeMap<String, Value>,
    /// The chat that it answers in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<ChatId>,
    /// The message of the chat that its answer is written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
    /// The tool call that started it, if another agent or tool did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_call: Option<CallId>,
    /// The run of the agent above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_run: Option<RunId>,
    /// The agents above it, outermost first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ancestors: Vec<AgentSlug>,
    /// The surfaces of everything above the call that started it, each once, that of the root first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub surfaces_above: Vec<Cow<'static, str>>,
    /// What it may use: the budget of the agent and what is left of that of the run above.
    #[serde(default)]
    pub budget: AgentBudget,
    /// The webhook that its end is delivered to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<WebhookId>,
    /// The id of the request that started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The state.
    pub status: RunStatus,
    /// The final answer: a text, or a value that matches the output schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// What it has used.
    #[serde(default)]
    pub usage: RunUsage,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When it first started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
}

/// The usage of a run, including child runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunUsage {
    /// The number of answers of models.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub answers: u32,
    /// The number of tool calls.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub calls: u32,
    /// All tokens of requests, cached ones included.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub input_tokens: u64,
    /// All tokens of answers, reasoning included.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub output_tokens: u64,
    /// The tokens of requests that the provider read from its cache.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub cached_tokens: u64,
    /// The cost, where prices are configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// The currency of the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// The time that the run was active, in milliseconds: without waiting for people.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(required))]
    pub active_ms: u64,
}

impl RunUsage {
    /// Adds what another run or step has used.
    pub fn add(&mut self, other: &Self) {
        self.answers = self.answers.saturating_add(other.answers);
        self.calls = self.calls.saturating_add(other.calls);
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        if let Some(cost) = other.cost {
            self.cost = Some(self.cost.unwrap_or_default() + cost);
            self.currency = other.currency.clone().or_else(|| self.currency.take());
        }
        self.active_ms = self.active_ms.saturating_add(other.active_ms);
    }

    /// Returns all tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// One step of a run. Steps are numbered from 1 and never change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RunStep {
    /// Its number.
    pub number: u32,
    /// What happened.
    pub body: StepBody,
    /// When it started.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub started_at: Timestamp,
    /// How long it took, in milliseconds.
    pub duration_ms: f64,
}

/// What happened in a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "most steps are results, so a box would only cost an allocation"
)]
pub enum StepBody {
    /// The model answered.
    Answer(AnswerStep),
    /// A call of the answer ended, or was answered without running.
    Result(ResultStep),
    /// A call waits for approval.
    Waiting(WaitingStep),
    /// A person decided about a call that waited.
    Decided(DecidedStep),
    /// The conversation was shortened to fit the context window.
    Shortened(ShortenedStep),
    /// The model is asked to correct its answer.
    Correction {
        /// The text for the model.
        text: String,
    },
}

/// An answer of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AnswerStep {
    /// The model that answered.
    pub model: String,
    /// The parts of the answer: an array of content parts (`haft_agent::model::ContentPart`).
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub content: Value,
    /// Why it ended: `stop`, `tool_calls`, `length`, `content_filter`; `cancelled` or `error` if it was cut off.
    pub finish_reason: String,
    /// Its token usage and cost.
    pub usage: RunUsage,
}

/// The end of one call of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ResultStep {
    /// The number of the step with the answer.
    pub answer: u32,
    /// The index of the call in the answer, from 0.
    pub index: u32,
    /// The id that the model gave the call.
    pub id: String,
    /// The name that the model used.
    pub name: String,
    /// The tool, `bundle:name@version`, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments after coercion.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub args: Value,
    /// The recorded call, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<uuid::Uuid>))]
    pub call_id: Option<CallId>,
    /// How it ended.
    pub status: crate::call::CallStatus,
    /// The text for the model.
    pub text: String,
    /// The value, or a preview of it with its handle if it is large.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<Value>))]
    pub value: Option<Value>,
    /// The images of the result (`haft_agent::model::ImageSource`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "openapi", schema(value_type = Vec<Value>))]
    pub images: Vec<Value>,
    /// The error, if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StepError>,
    /// The usage of agent runs inside the call.
    #[serde(default)]
    pub usage: RunUsage,
}

/// The error of a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepError {
    /// The stable code.
    pub code: String,
    /// The message.
    pub message: String,
}

/// A call that waits for approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WaitingStep {
    /// The number of the step with the answer.
    pub answer: u32,
    /// The index of the call in the answer, from 0.
    pub index: u32,
    /// The id that the model gave the call.
    pub id: String,
    /// The name that the model used.
    pub name: String,
    /// The tool, `bundle:name@version`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments after coercion.
    #[cfg_attr(feature = "openapi", schema(value_type = Value))]
    pub args: Value,
    /// The call that waits.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub call_id: CallId,
    /// Its approval.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub approval_id: ApprovalId,
    /// When the approval expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub expires_at: Option<Timestamp>,
}

/// The decision about a call that waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct DecidedStep {
    /// The approval.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub approval_id: ApprovalId,
    /// The call.
    #[cfg_attr(feature = "openapi", schema(value_type = uuid::Uuid))]
    pub call_id: CallId,
    /// Whether it was approved.
    pub approved: bool,
}

/// How the conversation was shortened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ShortenedStep {
    /// Results of these steps are replaced by their handles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub results: Vec<u32>,
    /// The summary that replaces the messages of the conversation before `keep_from`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The number of messages at the start of the conversation that the summary replaces.
    #[serde(default)]
    pub replaced_messages: u32,
    /// The usage of the summary request.
    #[serde(default)]
    pub usage: RunUsage,
}

/// The right of a node to write to a run. It is lost when another node claims the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLease {
    /// The run.
    pub run: RunId,
    /// Grows with each claim.
    pub fence: i64,
}

/// Why a run could not be written.
#[derive(Debug, thiserror::Error)]
pub enum RunStoreError {
    /// Another node runs it, or it has ended.
    #[error("the run belongs to another node")]
    LeaseLost,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a node leaves a run.
#[derive(Debug, Clone, PartialEq)]
pub enum RunEnd {
    /// It has ended.
    Finished {
        /// A final status.
        status: RunStatus,
        /// The answer.
        output: Option<Value>,
        /// The error.
        error: Option<CallError>,
    },
    /// It waits until these calls have ended.
    Waiting(Vec<CallId>),
    /// The node stops: another one continues.
    Released,
}

/// Where a node writes the runs that it has claimed. What a method stores is durable when it returns.
pub trait RunStore: Send + Sync {
    /// Appends steps with their numbers, and stores what the run has used.
    fn append_steps<'a>(
        &'a self,
        lease: &'a RunLease,
        steps: Vec<RunStep>,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>>;

    /// Gives the run up: it has ended, waits, or is left to another node.
    fn release_run<'a>(
        &'a self,
        lease: &'a RunLease,
        end: RunEnd,
        usage: &'a RunUsage,
    ) -> BoxFuture<'a, Result<(), RunStoreError>>;
}
