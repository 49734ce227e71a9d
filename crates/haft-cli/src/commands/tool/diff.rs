//! `haft tool diff`: compares two revisions.

use clap::Args;
use haft_api::revision::RevisionDiff;

use super::super::life_cycle::show_diff;
use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;

/// Compare two revisions
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Older revision [default: the published one, otherwise the previous one]
    #[arg(long, value_name = "REVISION")]
    from: Option<u32>,
    /// Newer revision [default: the newest one]
    #[arg(long, value_name = "REVISION")]
    to: Option<u32>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let request = Request::get(format!("/api/tools/{}/diff", tool_segment(&arguments.tool)))
        .query_some("from", number(arguments.from).as_deref())
        .query_some("to", number(arguments.to).as_deref());
    let data = context.tool_request(&arguments.tool, request).await?;
    context.output.show(&data, |output, diff: RevisionDiff| show_diff(output, &diff))
}
