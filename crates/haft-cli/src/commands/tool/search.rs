//! `haft tool search`: finds tools by keywords or by a description of the task.

use clap::Args;
use serde_json::Value;

use super::filter::ToolFilter;
use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// The longest shown part of a description, in characters.
const MAX_DESCRIPTION: usize = 100;

/// Search tools
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Keywords, or what the tool should do in plain words
    #[arg(required = true, value_name = "QUERY")]
    query: Vec<String>,
    #[command(flatten)]
    filter: ToolFilter,
    /// Also tools that cannot be called: disabled, denied or not ready
    #[arg(long)]
    all: bool,
    /// Maximum number of tools
    #[arg(long, value_name = "N", default_value = "10", value_parser = clap::value_parser!(u16).range(1..=100))]
    limit: u16,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let request = Request::get("/api/tools/search")
        .query("q", &arguments.query.join(" "))
        .query("page_size", &arguments.limit.to_string())
        .query("include_disabled", if arguments.all { "true" } else { "false" });
    let response = client.data(arguments.filter.apply(request)).await;
    client.close().await;
    let data = response?;
    context.output.data(&data, |output| {
        let tools = view::list(&data, "tools");
        for tool in tools {
            print(tool, output)?;
        }
        if tools.is_empty() {
            output.note("no tool found; `--all` also searches disabled tools and those that are not ready");
        }
        Ok(())
    })
}

/// Prints a tool in two lines: its name, and the first line of its description.
fn print(tool: &Value, output: &Output) -> Result<(), CliError> {
    let qualified = view::qualified(tool);
    // The ranges count from the start of the bare name.
    let before = view::text(tool, "bundle").chars().count() + 1;
    let name_ranges = ranges(tool, "name").into_iter().map(|(start, end)| (before + start, before + end));
    output.marked_line("", &qualified, &name_ranges.collect::<Vec<_>>())?;
    let (description, skipped) = first_line(&view::text(tool, "description"));
    let shown = |(start, end): (usize, usize)| {
        let end = end.checked_sub(skipped)?.min(MAX_DESCRIPTION);
        let start = start.checked_sub(skipped)?;
        (start < end).then_some((start, end))
    };
    let description_ranges: Vec<_> = ranges(tool, "description").into_iter().filter_map(shown).collect();
    output.marked_line("    ", &description, &description_ranges)
}

/// Returns the first line of a description, cut, and how many characters were skipped before it.
fn first_line(description: &str) -> (String, usize) {
    let trimmed = description.trim_start();
    let skipped = description.chars().count() - trimmed.chars().count();
    let line = trimmed.lines().next().unwrap_or_default();
    let mut cut: String = line.chars().take(MAX_DESCRIPTION).collect();
    if cut.len() < line.len() {
        cut.push('…');
    }
    (cut, skipped)
}

/// Reads the matching ranges of a field, in characters.
fn ranges(tool: &Value, field: &str) -> Vec<(usize, usize)> {
    let list = tool.get("highlights").map(|highlights| view::list(highlights, field)).unwrap_or_default();
    let number = |range: &Value, at: usize| usize::try_from(range.get(at)?.as_u64()?).ok();
    list.iter().filter_map(|range| Some((number(range, 0)?, number(range, 1)?))).collect()
}
