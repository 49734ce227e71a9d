//! Records of calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::Timestamp;
use crate::id::CallId;
use crate::invocation::Invocation;
use crate::name::TenantId;
use crate::outcome::{CallError, ErrorCode, Outcome};
use crate::problem::excerpt;
use crate::spec::Renderer;
use crate::workspace::WorkspaceUse;

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum CallStatus {
    /// Accepted, not started.
    Pending,
    /// Running.
    Running,
    /// Finished with a value.
    Success,
    /// Finished with an error.
    Error,
    /// Cancelled.
    Cancelled,
    /// Waiting for a person's decision.
    AwaitingApproval,
    /// Denied by a person; it did not run.
    Denied,
    /// Nobody decided in time; it did not run.
    Expired,
    /// The node that ran it stopped; its effects are unknown.
    Interrupted,
}

impl CallStatus {
    /// Every status.
    pub const ALL: [CallStatus; 9] = [
        CallStatus::Pending,
        CallStatus::Running,
        CallStatus::Success,
        CallStatus::Error,
        CallStatus::Cancelled,
        CallStatus::AwaitingApproval,
        CallStatus::Denied,
        CallStatus::Expired,
        CallStatus::Interrupted,
    ];

    /// Returns the name used in JSON and in the store.
    pub const fn as_str(self) -> &'static str {
        match self {
            CallStatus::Pending => "pending",
            CallStatus::Running => "running",
            CallStatus::Success => "success",
            CallStatus::Error => "error",
            CallStatus::Cancelled => "cancelled",
            CallStatus::AwaitingApproval => "awaiting_approval",
            CallStatus::Denied => "denied",
            CallStatus::Expired => "expired",
            CallStatus::Interrupted => "interrupted",
        }
    }

    /// Parses the name that [`CallStatus::as_str`] returns.
    pub fn parse(text: &str) -> Option<CallStatus> {
        CallStatus::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// Returns whether the call has finished.
    pub const fn is_final(self) -> bool {
        !matches!(self, CallStatus::Pending | CallStatus::Running | CallStatus::AwaitingApproval)
    }
}

/// The exit status and output of a tool's process, for the operator and never for the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct ProcessRecord {
    /// The exit code, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that terminated it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// The limit that it exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// The tail of standard output, if the call failed; otherwise the output is the value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stdout: String,
    /// The tail of standard error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
    /// How many bytes of standard output were dropped.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !*value
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero_ms(value: &f64) -> bool {
    *value == 0.0
}

/// The length that an error message is shortened to when the body of its call is removed, in characters.
const SHORT_MESSAGE: usize = 300;

/// The record of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecord {
    /// What was requested, by whom.
    #[serde(flatten)]
    pub invocation: Invocation,
    /// The state.
    pub status: CallStatus,
    /// The value, if the call succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The size of the result if it is stored apart; then `value` is a [`LargeResult`](crate::large_result::LargeResult).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    /// The error, if the call failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CallError>,
    /// Additional content such as images, as MCP content blocks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<Value>,
    /// The process of the tool, if it ran one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<ProcessRecord>,
    /// The effects of the call in its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_use: Option<Box<WorkspaceUse>>,
    /// How the result is shown, as the tool was defined when it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renderer: Option<Box<Renderer>>,
    /// The policy rule or the flag of the tool that decided about the call, and the approval that it needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Box<CallDecision>>,
    /// When it started; while it waits, when it was requested.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The duration in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// How long each step took.
    #[serde(default)]
    pub steps: StepTimes,
    /// Whether arguments, value, content and output were removed because the ledger reached its size limit.
    #[serde(default, skip_serializing_if = "is_false")]
    pub body_removed: bool,
}

/// How a call was authorised, where more than the role and the allow-list decided.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CallDecision {
    /// The policy rule that decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The approval of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<Uuid>,
    /// Who approved or denied it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    /// The provider of the account that the call waited for. Nobody has approved such a call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
}

/// How long the steps of a call took, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct StepTimes {
    /// Resolving the tool, its state, the permissions, and the arguments.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub check_ms: f64,
    /// Waiting in the queue or for an approval.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub wait_ms: f64,
    /// Reserving the idempotency key.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub reserve_ms: f64,
    /// Waiting for other calls of the tool.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub admit_ms: f64,
    /// Waiting for the workspace and bringing its files here; installing what the tool needs, such as Python packages.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub prepare_ms: f64,
    /// Running the tool, with its retries.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub execute_ms: f64,
    /// Storing the state of the workspace after the call.
    #[serde(default, skip_serializing_if = "is_zero_ms")]
    pub snapshot_ms: f64,
}

impl CallRecord {
    /// Returns the record of a call that has not ended.
    pub fn open(invocation: Invocation, status: CallStatus, started_at: Timestamp) -> Self {
        Self {
            invocation,
            status,
            value: None,
            stored_bytes: None,
            error: None,
            content: Vec::new(),
            process: None,
            workspace_use: None,
            renderer: None,
            decision: None,
            started_at,
            finished_at: None,
            duration_ms: None,
            steps: StepTimes::default(),
            body_removed: false,
        }
    }

    /// Returns the id of the call.
    pub fn id(&self) -> CallId {
        self.invocation.id
    }

    /// Returns the tenant that the call runs for.
    pub fn tenant(&self) -> &TenantId {
        self.invocation.tenant()
    }

    /// Records the outcome of the call.
    pub fn finish(&mut self, outcome: Outcome, finished_at: Timestamp, duration_ms: f64) {
        self.finished_at = Some(finished_at);
        self.duration_ms = Some(duration_ms);
        match outcome {
            Ok(value) => {
                self.status = CallStatus::Success;
                self.value = Some(value);
            }
            Err(error) => {
                self.status = match error.code {
                    ErrorCode::Cancelled => CallStatus::Cancelled,
                    ErrorCode::Interrupted => CallStatus::Interrupted,
                    ErrorCode::ApprovalDenied => CallStatus::Denied,
                    ErrorCode::ApprovalExpired => CallStatus::Expired,
                    _ => CallStatus::Error,
                };
                self.error = Some(error);
            }
        }
    }

    /// Returns the record without what the call received and returned: who called what, when, and how it ended.
    #[must_use]
    pub fn without_body(mut self) -> Self {
        // The audit of calls shows it, and it cannot be computed later.
        self.invocation.args_digest = self.args_digest();
        self.invocation.args = Value::Null;
        self.value = None;
        self.stored_bytes = None;
        self.content = Vec::new();
        if let Some(process) = &mut self.process {
            process.stdout.clear();
            process.stderr.clear();
        }
        if let Some(error) = &mut self.error {
            error.message = excerpt(&error.message, SHORT_MESSAGE);
            error.for_model = error.for_model.as_ref().map(|text| excerpt(text, SHORT_MESSAGE));
            error.details = None;
        }
        self.body_removed = true;
        self
    }

    /// Returns the hash of the arguments, unless they were removed without it.
    pub fn args_digest(&self) -> Option<String> {
        let computed = || (!self.body_removed).then(|| crate::hash::of_args(&self.invocation.args));
        self.invocation.args_digest.clone().or_else(computed)
    }

    /// Returns whether the tool, the arguments, the value, the error message or the output of the process contain a
    /// text; ASCII letters match in any case.
    pub fn contains_text(&self, text: &str) -> bool {
        let text = text.to_ascii_lowercase();
        let contains = |field: &str| field.to_ascii_lowercase().contains(&text);
        let error = self.error.as_ref().map(|error| error.message.as_str());
        let process = self.process.as_ref();
        let process = process.into_iter().flat_map(|process| [process.stdout.as_str(), &process.stderr]);
        [&*self.invocation.tool].into_iter().chain(error).chain(process).any(contains)
            || [&self.invocation.args]
                .into_iter()
                .chain(&self.value)
                .chain(&self.content)
                .any(|v| any_scalar(v, &contains))
    }

    /// Returns the outcome of a finished call.
    pub fn outcome(&self) -> Option<Outcome> {
        if self.body_removed && self.status == CallStatus::Success {
            let message =
                "the call succeeded, but its result is no longer stored: the ledger reached its size limit";
            return Some(Err(CallError::new(ErrorCode::Conflict, message)));
        }
        match (&self.error, self.status.is_final()) {
            (Some(error), true) => Some(Err(error.clone())),
            (None, true) => Some(Ok(self.value.clone().unwrap_or(Value::Null))),
            (_, false) => None,
        }
    }
}

/// Returns whether a string or number inside a value satisfies a condition. The recursion is bounded by the depth that
/// the JSON parser accepts.
fn any_scalar(value: &Value, condition: &impl Fn(&str) -> bool) -> bool {
    match value {
        Value::Null | Value::Bool(_) => false,
        Value::Number(number) => condition(&number.to_string()),
        Value::String(text) => condition(text),
        Value::Array(items) => items.iter().any(|item| any_scalar(item, condition)),
        Value::Object(map) => map.values().any(|item| any_scalar(item, condition)),
    }
}
