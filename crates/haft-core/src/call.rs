//! A recorded call.

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::id::{CallId, ToolId};
use crate::name::TenantId;
use crate::outcome::{CallError, Outcome};
use crate::runnable::Mode;

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Accepted, not started.
    Pending,
    /// Running.
    Running,
    /// Ended with a value.
    Success,
    /// Ended with an error.
    Error,
    /// Ended by a cancellation.
    Cancelled,
}

impl CallStatus {
    /// Every status.
    pub const ALL: [CallStatus; 5] = [
        CallStatus::Pending,
        CallStatus::Running,
        CallStatus::Success,
        CallStatus::Error,
        CallStatus::Cancelled,
    ];

    /// Returns the spelling on the wire and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            CallStatus::Pending => "pending",
            CallStatus::Running => "running",
            CallStatus::Success => "success",
            CallStatus::Error => "error",
            CallStatus::Cancelled => "cancelled",
        }
    }

    /// Reads [`CallStatus::as_str`].
    pub fn parse(text: &str) -> Option<CallStatus> {
        CallStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Tells whether the call is over.
    pub const fn is_final(self) -> bool {
        matches!(self, CallStatus::Success | CallStatus::Error | CallStatus::Cancelled)
    }
}

/// What a tool's process left besides its value: for the operator, never for the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// The code with which it ended, where it ended by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The limit at which it was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The end of what it wrote to its standard output, where the call failed: else that is the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// The end of what it wrote to its standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// How many bytes of its standard output were left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// One recorded invocation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// Its identity.
    pub id: CallId,
    /// For whom it ran.
    pub tenant: TenantId,
    /// Which tool ran.
    pub tool_id: ToolId,
    /// `bundle:name@version` at the time.
    pub tool: Arc<str>,
    /// Which revision ran.
    pub revision: u32,
    /// In which mode.
    pub mode: Mode,
    /// How far it is.
    pub status: CallStatus,
    /// The arguments.
    pub args: Value,
    /// The value, where it ended with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The error, where it ended with one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// What came beside the value or the error, such as images, as content blocks of MCP.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Value>,
    /// What the process of the tool left besides its value, where it ran one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRecord>,
    /// Who called: the name of a token.
    pub caller: Arc<str>,
    /// Through which surface: `rest`, `cli`, `mcp`, …
    pub surface: Cow<'static, str>,
    /// The key under which a repetition finds this call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The hash of the arguments, where there is such a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_digest: Option<String>,
    /// The request that brought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The chat it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<String>,
    /// The message it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// How long it took, in milliseconds with a fraction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
}

impl CallRecord {
    /// Enters what the call came to.
    pub fn finish(&mut self, outcome: Outcome, finished_at: Timestamp, duration_ms: f64) {
        self.finished_at = Some(finished_at);
        self.duration_ms = Some(duration_ms);
        match outcome {
            Ok(value) => {
                self.status = CallStatus::Success;
                self.value = Some(value);
            }
            Err(error) => {
                self.status = if error.code == crate::outcome::ErrorCode::Cancelled {
                    CallStatus::Cancelled
                } else {
                    CallStatus::Error
                };
                self.error = Some(error);
            }
        }
    }

    /// Returns the outcome of a call that is over.
    pub fn outcome(&self) -> Option<Outcome> {
        match (&self.error, self.status.is_final()) {
            (Some(error), true) => Some(Err(error.clone())),
            (None, true) => Some(Ok(self.value.clone().unwrap_or(Value::Null))),
            (_, false) => None,
        }
    }
}
