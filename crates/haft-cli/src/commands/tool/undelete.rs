//! `haft tool undelete`: restores a deleted tool.

use clap::Args;
use haft_api::tool::ToolView;
use serde_json::json;

use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;

/// Restore a tool after its deletion
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tools/{}/undelete", tool_segment(&arguments.tool));
    let data = context.request(Request::post(path, json!({}))).await?;
    context.output.show(&data, |output, restored: ToolView| {
        output.note(&format!("restored `{}`", restored.qualified()));
        Ok(())
    })
}
