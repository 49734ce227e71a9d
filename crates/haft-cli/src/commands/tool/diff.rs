//! `haft tool diff`: shows what differs between two revisions.

use clap::Args;
use serde_json::Value;

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Show what differs between two revisions
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
    /// The older revision; without it, what production runs, else the one before the newest
    #[arg(long, value_name = "REVISION")]
    from: Option<u32>,
    /// The newer revision; without it, the newest
    #[arg(long, value_name = "REVISION")]
    to: Option<u32>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let request = Request::get(format!("/api/tools/{}/diff", segment(&arguments.tool)))
        .query_some("from", number(arguments.from).as_deref())
        .query_some("to", number(arguments.to).as_deref());
    let data = context.ask(request).await?;
    context.output.data(&data, |output| show(output, &data))
}

fn show(output: &Output, data: &Value) -> Result<(), CliError> {
    let (from, to) = (view::text(data, "from"), view::text(data, "to"));
    let changes = view::list(data, "changes");
    if changes.is_empty() {
        output.note(&format!("revisions {from} and {to} are equal"));
        return Ok(());
    }
    output.line(&format!("revision {from} to {to}"))?;
    for change in changes {
        output.line(&format!("\n{}", view::text(change, "field")))?;
        side(output, '-', change.get("before"))?;
        side(output, '+', change.get("after"))?;
    }
    Ok(())
}

/// Prints one side of a change, each line with its sign; nothing for what was not there.
fn side(output: &Output, sign: char, value: Option<&Value>) -> Result<(), CliError> {
    let text = value.filter(|value| !value.is_null()).map(view::readable).unwrap_or_default();
    text.lines().try_for_each(|line| output.line(&format!("  {sign} {line}")))
}
