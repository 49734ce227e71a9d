//! `haft tool diff`: compares two revisions.

use clap::Args;
use serde_json::Value;

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

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
    let request = Request::get(format!("/api/tools/{}/diff", segment(&arguments.tool)))
        .query_some("from", number(arguments.from).as_deref())
        .query_some("to", number(arguments.to).as_deref());
    let data = context.tool_request(&arguments.tool, request).await?;
    context.output.data(&data, |output| show(output, &data))
}

fn show(output: &Output, data: &Value) -> Result<(), CliError> {
    let (from, to) = (view::text(data, "from"), view::text(data, "to"));
    let changes = view::list(data, "changes");
    if changes.is_empty() {
        output.note(&if from == to {
            format!("nothing to compare: both sides are revision {from}")
        } else {
            format!("revisions {from} and {to} are identical")
        });
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

/// Prints one side of a change, each line with its sign; nothing for a missing value.
fn side(output: &Output, sign: char, value: Option<&Value>) -> Result<(), CliError> {
    let text = value.filter(|value| !value.is_null()).map(view::readable).unwrap_or_default();
    text.lines().try_for_each(|line| output.line(&format!("  {sign} {line}")))
}
