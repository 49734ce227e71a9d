//! `haft tool restore`: makes an earlier revision the newest one.

use clap::Args;
use serde_json::json;

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Make an earlier revision the newest one
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
    /// The revision, as `haft tool revisions` numbers it
    revision: u32,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let Arguments { tool, revision } = arguments;
    let path = format!("/api/tools/{}/revisions/{revision}/restore", segment(&tool));
    let data = context.ask(Request::post(path, json!({}))).await?;
    context.output.data(&data, |output| {
        let now = view::text(&data, "revision");
        output
            .note(&format!("restored revision {revision} of `{}` as revision {now}", view::qualified(&data)));
        Ok(())
    })
}
