//! The commands below `haft tool`.

use clap::Subcommand;

use super::{add, call, diff, edit, list, restore, revisions, rm, show, switch, test, validate, version};
use crate::context::Context;
use crate::error::CliError;

/// List, make, change and call tools
///
/// A tool is named by its `name`, by `bundle:name`, with or without `@version`, or by its id.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List tools
    #[command(visible_alias = "ls")]
    List(list::Arguments),
    /// Show one tool
    Show(show::Arguments),
    /// Make a tool from a file, from stdin, or from flags
    Add(add::Arguments),
    /// Change the definition of a tool in your editor
    Edit(edit::Arguments),
    /// Remove a tool; its definition is kept in `tool-history`
    Rm(rm::Arguments),
    /// Call a tool
    Call(call::Arguments),
    /// Run a tool as the live tester does
    Test(test::Arguments),
    /// Check a tool, or a file before it is added
    Validate(validate::Arguments),
    /// Make the newest revision the one that production runs
    Publish(switch::Arguments),
    /// Let a tool run on, with a warning to its callers
    Deprecate(switch::Arguments),
    /// List every state that a definition has had, newest first
    Revisions(revisions::Arguments),
    /// Show what differs between two revisions
    Diff(diff::Arguments),
    /// Make an earlier revision the newest one
    Restore(restore::Arguments),
    /// Give a tool a new version label
    Version(version::Arguments),
    /// Let a tool run
    Enable(switch::Arguments),
    /// Keep a tool from running
    Disable(switch::Arguments),
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::List(arguments) => list::run(arguments, context).await,
            Self::Show(arguments) => show::run(arguments, context).await,
            Self::Add(arguments) => add::run(arguments, context).await,
            Self::Edit(arguments) => edit::run(arguments, context).await,
            Self::Rm(arguments) => rm::run(arguments, context).await,
            Self::Call(arguments) => call::run(arguments, context).await,
            Self::Test(arguments) => test::run(arguments, context).await,
            Self::Validate(arguments) => validate::run(arguments, context).await,
            Self::Publish(arguments) => switch::run(arguments, switch::Step::Publish, context).await,
            Self::Deprecate(arguments) => switch::run(arguments, switch::Step::Deprecate, context).await,
            Self::Revisions(arguments) => revisions::run(arguments, context).await,
            Self::Diff(arguments) => diff::run(arguments, context).await,
            Self::Restore(arguments) => restore::run(arguments, context).await,
            Self::Version(arguments) => version::run(arguments, context).await,
            Self::Enable(arguments) => switch::run(arguments, switch::Step::Enable, context).await,
            Self::Disable(arguments) => switch::run(arguments, switch::Step::Disable, context).await,
        }
    }
}
