//! `haft tool rm`: deletes a tool.

use clap::Args;

use super::usage;
use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Delete a tool; a backup is kept in `tool-history`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Keep no backup of the definition
    #[arg(long)]
    no_backup: bool,
    /// Do not ask for confirmation if somebody depends on the tool
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let is_used = usage::notice(&arguments.tool, context).await;
    if is_used && !arguments.yes && !input::confirm(&format!("Delete `{}`?", arguments.tool))? {
        return Err(CliError::usage("not deleted; pass `--yes` to delete without confirmation"));
    }
    let mut request = Request::delete(format!("/api/tools/{}", segment(&arguments.tool)));
    if arguments.no_backup {
        request = request.query("keep_backup", "false");
    }
    let data = context.tool_request(&arguments.tool, request).await?;
    context.output.data(&data, |output| {
        let backup = view::text(&data, "backup_path");
        let location = if backup.is_empty() { String::new() } else { format!("; backup: `{backup}`") };
        output.note(&format!("deleted `{}`{location}", arguments.tool));
        Ok(())
    })
}
