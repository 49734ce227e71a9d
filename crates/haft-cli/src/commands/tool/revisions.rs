//! `haft tool revisions`: lists the revisions of a tool.

use clap::Args;
use haft_api::revision::{RevisionList, RevisionView};

use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// List the revisions of a tool, newest first
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let path = format!("/api/tools/{}/revisions", tool_segment(&arguments.tool));
    let data = context.tool_request(&arguments.tool, Request::get(path)).await?;
    context.output.show(&data, |output, list: RevisionList| {
        let rows = list.revisions.iter().map(row).collect();
        let header = ["REVISION", "VERSION", "CREATED", "PUBLISHED", "HASH", "DESCRIPTION"];
        output.list(&header, &[], rows)
    })
}

fn row(revision: &RevisionView) -> Vec<String> {
    vec![
        revision.number.to_string(),
        revision.definition.version.to_string(),
        view::moment(revision.created_at),
        view::yes_no(revision.published),
        revision.hash.chars().take(12).collect(),
        view::first_line(&revision.definition.description, 60),
    ]
}
