//! The bodies of deliveries: what happened, without arguments and secrets, and bounded in size.

use haft_core::Timestamp;
use haft_core::approval::Approval;
use haft_core::call::CallRecord;
use haft_core::problem::excerpt;
use haft_core::run::Run;
use haft_core::webhook::WebhookEvent;
use serde_json::{Map, Value, json};

/// The largest value of a call or a run that is sent, in bytes of JSON. The receiver gets larger ones from
/// `/api/calls/{id}` and `/api/runs/{id}`.
const MAX_VALUE_BYTES: usize = 64 * 1024;
/// The longest error message, in characters.
const MAX_MESSAGE: usize = 2000;

/// Returns the body of an event.
pub(crate) fn body(event: WebhookEvent, at: Timestamp, data: &Value) -> String {
    json!({"type": event.as_str(), "timestamp": at, "data": data}).to_string()
}

/// Returns the data of a call that has ended.
pub(super) fn call(record: &CallRecord) -> Value {
    let invocation = &record.invocation;
    let mut data = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            data.insert(name.to_owned(), value);
        }
    };
    set("call_id", json!(invocation.id));
    set("tool_id", json!(invocation.tool_id));
    set("tool", json!(invocation.tool));
    set("revision", json!(invocation.revision));
    set("status", json!(record.status));
    set("caller", json!(invocation.principal.name));
    set("surface", json!(invocation.surface));
    set("chat_id", json!(invocation.chat_id));
    set("message_id", json!(invocation.message_id));
    set("approval_id", json!(record.decision.as_ref().and_then(|decision| decision.approval_id)));
    set("started_at", json!(record.started_at));
    set("finished_at", json!(record.finished_at));
    set("duration_ms", json!(record.duration_ms));
    if let Some(error) = &record.error {
        let message = excerpt(error.for_model.as_deref().unwrap_or(&error.message), MAX_MESSAGE);
        set("error", json!({"code": error.code, "message": message, "retryable": error.retryable}));
    }
    if let Some(value) = &record.value {
        if value.to_string().len() <= MAX_VALUE_BYTES {
            data.insert("value".to_owned(), value.clone());
        } else {
            data.insert("value_omitted".to_owned(), json!(true));
        }
    }
    Value::Object(data)
}

/// Returns the data of a run that has ended.
pub(super) fn run(run: &Run) -> Value {
    let mut data = Map::new();
    let mut set = |name: &str, value: Value| {
        if !value.is_null() {
            data.insert(name.to_owned(), value);
        }
    };
    set("run_id", json!(run.id));
    set("agent_id", json!(run.agent_id));
    set("agent", json!(run.definition.slug));
    set("agent_revision", json!(run.agent_revision));
    set("status", json!(run.status));
    set("requested_by", json!(run.principal.name));
    set("surface", json!(run.surface));
    set("chat_id", json!(run.chat_id));
    set("message_id", json!(run.message_id));
    set("parent_call_id", json!(run.parent_call));
    set("parent_run_id", json!(run.parent_run));
    set("usage", json!(run.usage));
    set("created_at", json!(run.created_at));
    set("started_at", json!(run.started_at));
    set("finished_at", json!(run.finished_at));
    if let Some(error) = &run.error {
        let message = excerpt(error.for_model.as_deref().unwrap_or(&error.message), MAX_MESSAGE);
        set("error", json!({"code": error.code, "message": message, "retryable": error.retryable}));
    }
    if let Some(output) = &run.output {
        if output.to_string().len() <= MAX_VALUE_BYTES {
            data.insert("output".to_owned(), output.clone());
        } else {
            data.insert("output_omitted".to_owned(), json!(true));
        }
    }
    Value::Object(data)
}

/// Returns the data of an approval.
pub(super) fn approval(approval: &Approval) -> Value {
    json!({
        "approval_id": approval.id,
        "call_id": approval.call_id,
        "tool_id": approval.tool_id,
        "tool": approval.tool,
        "revision": approval.revision,
        "requested_by": approval.requested_by.name,
        "surface": approval.surface,
        "cause": approval.cause,
        "status": approval.status,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decided_at": approval.decided_at,
        "decided_by": approval.decided_by,
        "reason": approval.reason,
        "approval_url": format!("/api/approvals/{}", approval.id),
    })
}
