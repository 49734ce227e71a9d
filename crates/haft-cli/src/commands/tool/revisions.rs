//! `haft tool revisions`: lists the revisions of a tool.

use clap::Args;
use serde_json::Value;

use crate::client::{Request, segment};
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
    let path = format!("/api/tools/{}/revisions", segment(&arguments.tool));
    let data = context.tool_request(&arguments.tool, Request::get(path)).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "revisions").iter().map(row).collect();
        output.table(&["REVISION", "VERSION", "CREATED", "PUBLISHED", "HASH", "DESCRIPTION"], rows)
    })
}

fn row(revision: &Value) -> Vec<String> {
    vec![
        view::text(revision, "number"),
        view::text(revision, "definition.version"),
        view::time(revision, "created_at"),
        if view::is(revision, "published") { "yes".to_owned() } else { "no".to_owned() },
        view::text(revision, "hash").chars().take(12).collect(),
        view::first_line(&view::text(revision, "definition.description"), 60),
    ]
}
