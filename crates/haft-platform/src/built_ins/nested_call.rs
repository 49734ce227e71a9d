//! Calls made by a built-in tool: through the pipeline, with the caller, deadline and events of its own call.

use haft_core::executor::CallContext;
use haft_core::invocation::NestedCall;
use haft_core::outcome::Outcome;
use haft_core::reference::ToolRef;
use serde_json::{Map, Value};

/// Calls a tool from within a call; the record names the calling tool as its surface.
pub(super) async fn call_tool(
    call: &CallContext,
    surface: &'static str,
    tool: ToolRef,
    args: Map<String, Value>,
) -> Outcome {
    call.invoke(NestedCall { tool, args, surface, request_id: crate::request_id::current() }).await
}
