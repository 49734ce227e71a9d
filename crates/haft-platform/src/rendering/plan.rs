//! The render plan of a recorded call. It is computed from the renderer that the record names: the record need not hold
//! the value twice.

use haft_core::call::CallRecord;
use haft_core::id::CallId;
use haft_core::render::{RenderContext, RenderPlan};
use haft_core::workspace::WorkspaceName;
use serde_json::Value;

/// Returns how the result of a call is shown; `None` if its tool has no renderer, or if the call has not ended. `whole`
/// is the result if it is stored apart.
pub fn plan(record: &CallRecord, whole: Option<&Value>) -> Option<RenderPlan> {
    plan_with(record, whole, whole.map(|_| record.id()))
}

/// Returns the plan with the whole result in it.
pub fn complete_plan(record: &CallRecord, whole: Option<&Value>) -> Option<RenderPlan> {
    plan_with(record, whole, None)
}

fn plan_with(record: &CallRecord, whole: Option<&Value>, large_result: Option<CallId>) -> Option<RenderPlan> {
    let renderer = record.renderer.as_ref().filter(|_| record.status.is_final() && !record.body_removed)?;
    let invocation = &record.invocation;
    let workspace = invocation.workspace.as_ref().map(files_path);
    let bundle = invocation.tool.split(':').next().unwrap_or_default();
    let toolset = format!("/api/toolsets/{bundle}/files");
    let error = record.error.as_ref();
    Some(RenderPlan::new(
        renderer,
        RenderContext {
            args: &invocation.args,
            value: whole.or(record.value.as_ref()).filter(|_| error.is_none()),
            error: error.map(|error| error.message.as_str()),
            chat_id: invocation.chat_id.as_deref(),
            workspace: workspace.as_deref(),
            toolset: Some(&toolset),
            large_result,
        },
    ))
}

/// Returns the path of the API below which the files of a workspace are.
fn files_path(name: &WorkspaceName) -> String {
    match name {
        WorkspaceName::Chat(id) => format!("/api/chats/{id}/workspace/files"),
        WorkspaceName::Named(name) => format!("/api/workspaces/{name}/files"),
    }
}
