//! `haft tool rm`: removes a tool.

use clap::Args;

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Remove a tool; its definition is kept in `tool-history`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
    /// Keep no copy of the definition
    #[arg(long)]
    no_backup: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let mut request = Request::delete(format!("/api/tools/{}", segment(&arguments.tool)));
    if arguments.no_backup {
        request = request.query("keep_backup", "false");
    }
    let data = context.ask(request).await?;
    context.output.data(&data, |output| {
        let backup = view::text(&data, "backup_path");
        let kept =
            if backup.is_empty() { String::new() } else { format!("; its definition is in `{backup}`") };
        output.note(&format!("removed `{}`{kept}", arguments.tool));
        Ok(())
    })
}
