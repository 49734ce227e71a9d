//! Calls made by a built-in tool: through the pipeline, with the caller, deadline and events of its own call.

use std::sync::Arc;
use std::time::Instant;

use haft_core::executor::CallContext;
use haft_core::outcome::Outcome;
use haft_core::reference::ToolRef;
use haft_runtime::pipeline::{Labels, Request};
use serde_json::{Map, Value};

use crate::app::App;

/// Calls a tool from within a call; the record names the calling tool as its surface.
pub(super) async fn call_tool(
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
    // Boxed, because the pipeline calls itself.
    let completed = Box::pin(app.pipeline().call(tool.into(), request)).await?;
    match &completed.record.error {
        Some(error) => Err(error.clone()),
        None => Ok(completed.record.value.clone().unwrap_or(Value::Null)),
    }
}
