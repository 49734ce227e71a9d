//! `haft tool search`: finds tools by keywords or by a description of the task.

use clap::Args;
use haft_api::search::{RankedTool, SearchResult};

use super::filter::ToolFilter;
use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Form, Output};

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
    context.output.show(&data, |output, SearchResult { tools, .. }| {
        if output.form == Form::Name {
            let names = tools.iter().map(|found| vec![found.tool.qualified()]);
            return output.list(&[], &[], names.collect());
        }
        for tool in &tools {
            print(tool, output)?;
        }
        if tools.is_empty() {
            output.note("no tool found; `--all` also searches disabled tools and those that are not ready");
        }
        Ok(())
    })
}

/// Prints a tool in two lines: its name, and the first line of its description.
fn print(RankedTool { tool, highlights, .. }: &RankedTool, output: &Output) -> Result<(), CliError> {
    // The ranges count from the start of the bare name.
    let before = tool.bundle.chars().count() + 1;
    let name_ranges = highlights.name.iter().map(|(start, end)| (before + start, before + end));
    output.marked_line("", &tool.qualified(), &name_ranges.collect::<Vec<_>>())?;
    let (description, skipped) = first_line(&tool.description);
    let shown = |(start, end): &(usize, usize)| {
        let end = end.checked_sub(skipped)?.min(MAX_DESCRIPTION);
        let start = start.checked_sub(skipped)?;
        (start < end).then_some((start, end))
    };
    let description_ranges: Vec<_> = highlights.description.iter().filter_map(shown).collect();
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
