//! `haft tool restore`: restores an earlier revision as the newest one.

use clap::Args;
use haft_api::tool::ToolView;
use serde_json::json;

use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;

/// Restore an earlier revision as the newest one
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Revision, from `haft tool revisions`
    revision: u32,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let Arguments { tool, revision } = arguments;
    let path = format!("/api/tools/{}/revisions/{revision}/restore", tool_segment(&tool));
    let data = context.tool_request(&tool, Request::post(path, json!({}))).await?;
    context.output.show(&data, |output, restored: ToolView| {
        let now = restored.revision;
        output.note(&format!("restored revision {revision} of `{}` as revision {now}", restored.qualified()));
        Ok(())
    })
}
