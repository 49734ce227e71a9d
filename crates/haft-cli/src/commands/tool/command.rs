//! The commands below `haft tool`.

use clap::Subcommand;

use super::{
    add, call, deprecate, diff, edit, list, restore, revisions, rm, search, show, switch, test, undelete,
    usage, validate, version,
};
use crate::context::Context;
use crate::error::CliError;

/// Manage and call tools
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List tools
    #[command(visible_alias = "ls", after_help = examples!("haft tool list", "haft tool list -q weather"))]
    List(list::Arguments),
    /// Search tools by keywords or by what they should do
    #[command(after_help = examples!(
        "haft tool search weather",
        "haft tool search send a message to a channel --bundle slack"
    ))]
    Search(search::Arguments),
    /// Show a tool
    #[command(after_help = examples!("haft tool show weather", "haft tool show weather --source"))]
    Show(show::Arguments),
    /// Create a tool from a file, stdin or options
    #[command(visible_alias = "create", after_help = examples!(
        "haft tool add weather.yaml",
        "haft tool add --name cat-fact --description \"A fact about cats\" --url https://catfact.ninja/fact"
    ))]
    Add(add::Arguments),
    /// Edit the definition of a tool in $VISUAL, $EDITOR or vi
    #[command(after_help = examples!("haft tool edit weather", "haft tool edit weather --from weather.yaml"))]
    Edit(edit::Arguments),
    /// Delete a tool; `haft tool undelete` restores it for 48 hours, and a backup is kept in `tool-history`
    #[command(visible_alias = "delete", after_help = examples!("haft tool rm weather", "haft tool rm weather --yes"))]
    Rm(rm::Arguments),
    /// Restore a tool after its deletion, with its revisions; possible for 48 hours
    #[command(after_help = examples!("haft tool list --deleted", "haft tool undelete weather"))]
    Undelete(undelete::Arguments),
    /// Call a tool
    #[command(after_help = examples!(
        "haft tool call weather -a city=Paris -a days=3",
        "haft tool call weather --args @arguments.json"
    ))]
    Call(call::Arguments),
    /// Run the newest revision of a tool, without approval
    #[command(after_help = examples!("haft tool test weather -a city=Paris"))]
    Test(test::Arguments),
    /// Check a tool, or a file before adding it
    #[command(after_help = examples!("haft tool validate weather", "haft tool validate weather.yaml"))]
    Validate(validate::Arguments),
    /// Publish the newest revision: production mode runs it
    #[command(after_help = examples!("haft tool publish weather"))]
    Publish(switch::Arguments),
    /// Deprecate a tool: it still runs, with a warning, until its removal date
    #[command(after_help = examples!(
        "haft tool deprecate weather",
        "haft tool deprecate weather --replaced-by forecast --removal-date 2027-01-31"
    ))]
    Deprecate(deprecate::Arguments),
    /// Show who depends on a tool
    #[command(after_help = examples!("haft tool usage weather"))]
    Usage(usage::Arguments),
    /// List the revisions of a tool, newest first
    #[command(visible_alias = "history", after_help = examples!("haft tool revisions weather"))]
    Revisions(revisions::Arguments),
    /// Compare two revisions
    #[command(after_help = examples!("haft tool diff weather", "haft tool diff weather --from 1 --to 3"))]
    Diff(diff::Arguments),
    /// Restore an earlier revision as the newest one
    #[command(after_help = examples!("haft tool restore weather 1"))]
    Restore(restore::Arguments),
    /// Set the version label of a tool
    #[command(after_help = examples!("haft tool version weather 1.2.0"))]
    Version(version::Arguments),
    /// Enable a tool
    #[command(after_help = examples!("haft tool enable weather"))]
    Enable(switch::Arguments),
    /// Disable a tool
    #[command(after_help = examples!("haft tool disable weather"))]
    Disable(switch::Arguments),
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::List(arguments) => list::run(arguments, context).await,
            Self::Search(arguments) => search::run(arguments, context).await,
            Self::Show(arguments) => show::run(arguments, context).await,
            Self::Add(arguments) => add::run(arguments, context).await,
            Self::Edit(arguments) => edit::run(arguments, context).await,
            Self::Rm(arguments) => rm::run(arguments, context).await,
            Self::Undelete(arguments) => undelete::run(arguments, context).await,
            Self::Call(arguments) => call::run(arguments, context).await,
            Self::Test(arguments) => test::run(arguments, context).await,
            Self::Validate(arguments) => validate::run(arguments, context).await,
            Self::Publish(arguments) => switch::run(arguments, switch::StatusChange::Publish, context).await,
            Self::Deprecate(arguments) => deprecate::run(arguments, context).await,
            Self::Usage(arguments) => usage::run(arguments, context).await,
            Self::Revisions(arguments) => revisions::run(arguments, context).await,
            Self::Diff(arguments) => diff::run(arguments, context).await,
            Self::Restore(arguments) => restore::run(arguments, context).await,
            Self::Version(arguments) => version::run(arguments, context).await,
            Self::Enable(arguments) => switch::run(arguments, switch::StatusChange::Enable, context).await,
            Self::Disable(arguments) => switch::run(arguments, switch::StatusChange::Disable, context).await,
        }
    }
}
