//! Calls, their outcomes and their errors.

use std::borrow::Cow;

use haft_core::Timestamp;
use haft_core::call::{CallDecision, CallRecord, CallStatus, ProcessRecord, StepTimes};
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::render::RenderPlan;
use haft_core::runnable::Mode;
use haft_core::workspace::WorkspaceUse;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

/// The outcome of a call.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Outcome)]
pub struct OutcomeView<'a> {
    /// Whether the tool succeeded: then there is a `value`, otherwise an `error`.
    #[schema(example = true)]
    pub ok: bool,
    /// The value of the tool. A large one is replaced by a `LargeResult`, unless `result=inline` is set.
    #[serde(default, deserialize_with = "crate::read::some", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false, example = json!({"greeting": "Hello, Ada!"}))]
    pub value: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallErrorView<'a>>,
    /// Additional content such as images, as MCP content blocks.
    #[serde(default, skip_serializing_if = "<[Value]>::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    pub content: Cow<'a, [Value]>,
    /// The effects of the call in its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WorkspaceUse>)]
    pub workspace_use: Option<Cow<'a, WorkspaceUse>>,
    /// How the result is shown, if the tool has a renderer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_plan: Option<RenderPlan>,
    pub call_id: Uuid,
    #[schema(example = 12.3)]
    pub duration_ms: f64,
    /// Warnings for the caller, such as that the tool is deprecated and which tool replaces it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub warnings: Vec<String>,
}

impl<'a> OutcomeView<'a> {
    /// Creates the view of a finished call.
    pub fn new(record: &'a CallRecord, render_plan: Option<RenderPlan>, warnings: Vec<String>) -> Self {
        let value = record
            .error
            .is_none()
            .then_some(record.value.as_ref().unwrap_or(&Value::Null))
            .map(Cow::Borrowed);
        Self {
            ok: value.is_some(),
            value,
            error: record.error.as_ref().map(CallErrorView::from),
            content: Cow::Borrowed(&record.content),
            workspace_use: record.workspace_use.as_deref().map(Cow::Borrowed),
            render_plan,
            call_id: record.id().0,
            duration_ms: record.duration_ms.unwrap_or_default(),
            warnings,
        }
    }

    /// Replaces the value of a successful call if a new one is given.
    pub fn replace_value(&mut self, value: Option<&'a Value>) {
        if self.ok && value.is_some() {
            self.value = value.map(Cow::Borrowed);
        }
    }
}

/// The error of a call.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = CallError)]
pub struct CallErrorView<'a> {
    pub code: ErrorCode,
    /// What failed and how to fix it, for the operator.
    #[schema(example = "the call exceeded its timeout of 30 s")]
    pub message: Cow<'a, str>,
    /// Whether a retry may succeed.
    pub retryable: bool,
    /// Machine-readable details.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub details: Option<Cow<'a, Value>>,
    /// The message for the model.
    #[schema(example = "Tool call failed: the call exceeded its timeout of 30 s")]
    pub model_text: String,
}

impl<'a> From<&'a CallError> for CallErrorView<'a> {
    fn from(error: &'a CallError) -> Self {
        Self {
            code: error.code,
            message: Cow::Borrowed(&error.message),
            retryable: error.retryable,
            details: error.details.as_deref().map(Cow::Borrowed),
            model_text: error.model_text(),
        }
    }
}

/// A recorded call.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = Call)]
pub struct CallView<'a> {
    pub id: Uuid,
    #[schema(example = "default")]
    pub tenant: Cow<'a, str>,
    pub tool_id: Uuid,
    /// `bundle:name@version` at the time of the call.
    #[schema(example = "user-created:greet@1.0.0")]
    pub tool: Cow<'a, str>,
    /// The revision that ran.
    #[schema(example = 1)]
    pub revision: u32,
    pub mode: Mode,
    pub status: CallStatus,
    /// The arguments; `null` in a list if they are long.
    #[schema(required, value_type = Option<Object>, example = json!({"name": "Ada"}))]
    pub args: Cow<'a, Value>,
    /// The value, if the call succeeded.
    #[serde(default, deserialize_with = "crate::read::some", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Value, required = false)]
    pub value: Option<Cow<'a, Value>>,
    /// The size of the result if it is stored separately: then `value` describes it, and `/calls/{id}/result` returns it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<CallErrorView<'a>>,
    /// Additional content such as images, as MCP content blocks.
    #[serde(default, skip_serializing_if = "<[Value]>::is_empty")]
    #[schema(value_type = Vec<Object>, required = false)]
    pub content: Cow<'a, [Value]>,
    /// The process of the tool, if it ran one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ProcessRecord>)]
    pub process: Option<Cow<'a, ProcessRecord>>,
    /// The workspace that the call works in.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "report")]
    pub workspace: Option<String>,
    /// The effects of the call in its workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<WorkspaceUse>)]
    pub workspace_use: Option<Cow<'a, WorkspaceUse>>,
    /// How the result is shown, if the tool has a renderer; not in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub render_plan: Option<RenderPlan>,
    /// The name of the person, the service account, or the token that called.
    #[schema(example = "local")]
    pub caller: Cow<'a, str>,
    /// The id of the person or the service account that called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actor_id: Option<Uuid>,
    /// The id of the token that was used, if it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token_id: Option<Uuid>,
    /// The interface that the call came through: `rest`, `cli`, `mcp`, …
    #[schema(example = "rest")]
    pub surface: Cow<'a, str>,
    /// The call that made this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<Uuid>,
    /// The first call of the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<Cow<'a, str>>,
    /// The hash of the arguments, if there is an idempotency key or the call had to wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args_digest: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chat_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Cow<'a, str>>,
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// How long each step took.
    pub steps: StepTimes,
    /// The policy rule or the approval that decided about the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<CallDecision>)]
    pub decision: Option<Cow<'a, CallDecision>>,
    /// Set in a list if long values are omitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shortened: bool,
    /// Set if the ledger reached its size limit and removed the arguments and the result.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub body_removed: bool,
}

impl<'a> From<&'a CallRecord> for CallView<'a> {
    fn from(record: &'a CallRecord) -> Self {
        let invocation = &record.invocation;
        let borrowed = |text: Option<&'a str>| text.map(Cow::Borrowed);
        Self {
            id: invocation.id.0,
            tenant: Cow::Borrowed(record.tenant().as_str()),
            tool_id: invocation.tool_id.0,
            tool: Cow::Borrowed(&invocation.tool),
            revision: invocation.revision,
            mode: invocation.mode,
            status: record.status,
            args: Cow::Borrowed(&invocation.args),
            value: record.value.as_ref().map(Cow::Borrowed),
            stored_bytes: record.stored_bytes,
            error: record.error.as_ref().map(CallErrorView::from),
            content: Cow::Borrowed(&record.content),
            process: record.process.as_ref().map(Cow::Borrowed),
            workspace: invocation.workspace.as_ref().map(ToString::to_string),
            workspace_use: record.workspace_use.as_deref().map(Cow::Borrowed),
            render_plan: None,
            caller: Cow::Borrowed(&invocation.principal.name),
            actor_id: invocation.principal.actor.as_ref().map(|actor| actor.id.0),
            token_id: invocation.principal.token.map(|id| id.0),
            surface: Cow::Borrowed(&invocation.surface),
            parent_id: invocation.lineage.parent.map(|id| id.0),
            root_id: invocation.lineage.root.map(|id| id.0),
            idempotency_key: borrowed(invocation.idempotency_key.as_deref()),
            args_digest: borrowed(invocation.args_digest.as_deref()),
            request_id: borrowed(invocation.request_id.as_deref()),
            chat_id: borrowed(invocation.chat_id.as_deref()),
            message_id: borrowed(invocation.message_id.as_deref()),
            started_at: record.started_at,
            finished_at: record.finished_at,
            duration_ms: record.duration_ms,
            steps: record.steps,
            decision: record.decision.as_deref().map(Cow::Borrowed),
            shortened: false,
            body_removed: record.body_removed,
        }
    }
}

/// The webhook of a call.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedWebhook {
    pub id: Uuid,
    /// The signing secret, if the request had none; no later response contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "whsec_…")]
    pub secret: Option<String>,
}

/// A page of calls.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CallList<'a> {
    pub calls: Vec<CallView<'a>>,
    /// The number of calls that match the filter. With `q`, the number among the calls that were searched for this page.
    pub total: u64,
    /// Absent at the end of the list. With `q` at most 20,000 calls are searched per request: a page can have fewer calls
    /// than requested, or none, and still have a next one.
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A call whose cancellation was requested.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CancelledCall {
    pub call_id: Uuid,
    #[schema(example = "cancellation requested")]
    pub message: Cow<'static, str>,
}

/// The number of calls that started in each part of a period.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CallHistogram {
    pub from: Timestamp,
    pub to: Timestamp,
    /// The length of a bucket; the last one may be shorter.
    #[schema(example = 1440)]
    pub bucket_seconds: i64,
    /// Without gaps, oldest first.
    pub buckets: Vec<CallBucket>,
}

/// The calls that started in one part of the period.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct CallBucket {
    /// When it starts.
    pub at: Timestamp,
    /// Calls that succeeded.
    #[schema(example = 41)]
    pub success: u64,
    /// Calls that failed.
    #[schema(example = 1)]
    pub error: u64,
    /// Calls that have not ended, or that were cancelled, denied, expired or interrupted.
    #[schema(example = 0)]
    pub other: u64,
}

/// The webhook that receives the end of one call.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, expecting = "an object")]
pub struct CallWebhook {
    /// The URL.
    #[schema(example = "https://example.com/hooks/haft", max_length = 2048)]
    pub url: String,
    /// The signing secret: `whsec_` and 24 to 64 bytes in base64. Default: a new one, which the response contains.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    pub secret: Option<String>,
}

/// A call that was accepted to run in the background.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AcceptedCall {
    pub call_id: Uuid,
    pub status: CallStatus,
    /// The path of the event stream.
    #[schema(example = "/api/calls/018faf50-b7b6-7a01-9a05-a22a6e0af101/events")]
    pub events: String,
    /// The webhook of the call, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<AcceptedWebhook>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_that_is_null_is_a_value() {
        let outcome = |value: Option<Value>| {
            let mut outcome = json!({"ok": true, "call_id": Uuid::nil(), "duration_ms": 1.5});
            if let (Some(value), Some(map)) = (value, outcome.as_object_mut()) {
                map.insert("value".to_owned(), value);
            }
            let read: OutcomeView<'_> = serde_json::from_value(outcome.clone()).unwrap();
            assert_eq!(json!(read), outcome);
            read.value.map(Cow::into_owned)
        };
        assert_eq!(outcome(Some(Value::Null)), Some(Value::Null));
        assert_eq!(outcome(Some(json!([1]))), Some(json!([1])));
        assert_eq!(outcome(None), None);
    }
}
