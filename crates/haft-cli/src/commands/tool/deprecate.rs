//! `haft tool deprecate`: marks a tool as deprecated.

use clap::Args;
use haft_api::tool::ToolView;
use serde_json::json;

use super::usage;
use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;

/// Deprecate a tool: it still runs, with a warning, until its removal date
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Tool to call instead
    #[arg(long, value_name = "TOOL")]
    replaced_by: Option<String>,
    /// From this date or time on, calls are rejected, e.g. `2027-01-31`
    #[arg(long, value_name = "DATE")]
    removal_date: Option<String>,
    /// Message for callers
    #[arg(long, value_name = "TEXT")]
    message: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    usage::notice(&arguments.tool, context).await?;
    let body = json!({
        "replaced_by": arguments.replaced_by,
        "removal_date": arguments.removal_date,
        "message": arguments.message,
    });
    let request = Request::post(format!("/api/tools/{}/deprecate", tool_segment(&arguments.tool)), body);
    let data = context.tool_request(&arguments.tool, request).await?;
    context.output.show(&data, |output, changed: ToolView| {
        output.note(&format!("deprecated `{}`", changed.qualified()));
        Ok(())
    })
}
