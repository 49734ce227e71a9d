//! `haft tool version`: sets the version label of a tool.

use clap::Args;
use haft_api::tool::ToolView;
use serde_json::json;

use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;

/// Set the version label of a tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Version label, e.g. `1.2.0`
    #[arg(value_name = "X.Y.Z")]
    version: String,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tools/{}/version", tool_segment(&arguments.tool));
    let data = context
        .tool_request(
            &arguments.tool,
            Request::post(path, json!({})).query("new_version", &arguments.version),
        )
        .await?;
    context.output.show(&data, |output, changed: ToolView| {
        output.note(&format!("`{}` is now `{}`", arguments.tool, changed.qualified()));
        Ok(())
    })
}
