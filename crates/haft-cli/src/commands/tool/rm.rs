//! `haft tool rm`: deletes a tool.

use clap::Args;
use haft_api::tool::DeletedTool;

use super::super::life_cycle::delete_used;
use super::usage;
use crate::client::{Request, tool_segment};
use crate::context::Context;
use crate::error::CliError;
use crate::input;

/// Delete a tool; `haft tool undelete` restores it for 48 hours, and a backup is kept in `tool-history`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    /// Keep no backup of the definition: the tool cannot be restored
    #[arg(long)]
    no_backup: bool,
    /// Delete it even if tools or agents need it
    #[arg(long)]
    force: bool,
    /// Do not ask for confirmation if somebody depends on the tool
    #[arg(short, long)]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let is_used = usage::notice(&arguments.tool, context).await?;
    let is_confirmed = arguments.yes || arguments.force;
    if is_used && !is_confirmed && !input::confirm(&format!("Delete `{}`?", arguments.tool))? {
        return Err(CliError::usage("not deleted; pass `--yes` to delete without confirmation"));
    }
    let mut request = Request::delete(format!("/api/tools/{}", tool_segment(&arguments.tool)));
    if arguments.no_backup {
        request = request.query("keep_backup", "false");
    }
    let data = delete_used(request, &arguments.tool, arguments.force, |request| {
        context.tool_request(&arguments.tool, request)
    })
    .await?;
    context.output.show(&data, |output, deleted: DeletedTool| {
        let location = deleted.backup_path.map(|backup| format!("; backup: `{backup}`")).unwrap_or_default();
        output.note(&format!("deleted `{}`{location}", arguments.tool));
        Ok(())
    })
}
