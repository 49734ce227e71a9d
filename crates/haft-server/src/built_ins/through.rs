//! Calls that a built-in tool makes: by the one pipeline, with the caller, the time and the watchers of its own call.

use std::sync::Arc;
use std::time::Instant;

use haft_core::executor::CallContext;
use haft_core::outcome::Outcome;
use haft_core::reference::ToolRef;
use haft_runtime::pipeline::{Labels, Request};
use serde_json::{Map, Value};

use crate::app::App;

/// Calls a tool as a part of the call of another; the record says through which.
pub(super) async fn through_tool(
    app: &App,
    surface: &'static str,
    call: &CallContext,
    tool: ToolRef,
    args: Map<String, Value>,
) -> Outcome {
    let request = Request {
        principal: Arc::clone(call.principal()),
        args,
        mode: call.mode,
        surface,
        timeout: Some(call.deadline.saturating_duration_since(Instant::now())),
        events: call.events.clone(),
        labels: Labels::of_request(crate::request_id::current()),
    };
    // Boxed: the pipeline is called from within itself.
    let answer = Box::pin(app.pipeline().call(tool.into(), request)).await?;
    match &answer.record.error {
        Some(error) => Err(error.clone()),
        None => Ok(answer.record.value.clone().unwrap_or(Value::Null)),
    }
}
