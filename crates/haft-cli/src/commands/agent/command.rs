//! The commands below `haft agent`.

use clap::Subcommand;

use super::super::life_cycle::{self, AGENTS};
use super::{ask, list, show, write};
use crate::client::segment;
use crate::context::Context;
use crate::error::CliError;

/// Manage and run agents
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List agents
    #[command(visible_alias = "ls", after_help = examples!("haft agent list", "haft agent list -q research", "haft agent list --deleted"))]
    List(life_cycle::ListArguments),
    /// Show an agent with its tools
    #[command(after_help = examples!("haft agent show assistant", "haft agent show assistant --source"))]
    Show(show::Arguments),
    /// Create the agents of a file, or of stdin
    #[command(after_help = examples!("haft agent create assistant.yaml", "haft agent create team.yaml"))]
    Create(write::Create),
    /// Replace the definition of an agent: a new revision
    #[command(after_help = examples!("haft agent update assistant.yaml", "haft agent update new.yaml --agent assistant"))]
    Update(write::Update),
    #[command(flatten)]
    LifeCycle(life_cycle::Command),
    /// Delete an agent; its chats and runs stay, and `haft agent undelete` restores it for 48 hours
    #[command(visible_alias = "rm", after_help = examples!("haft agent delete assistant", "haft agent delete assistant --force"))]
    Delete(life_cycle::DeleteArguments),
    /// Ask an agent one question and print the answer
    #[command(after_help = concat!(
        "The answer goes to standard output, tool calls to standard error. Calls that need approval are asked\n\
         on a terminal; otherwise the run waits, and `haft approval` decides.\n\n",
        examples!(
            "haft agent run assistant \"What time is it in Tokyo?\"",
            "haft agent run assistant --var language=German \"Say hello\"",
            "haft --json agent run researcher - < question.txt"
        )
    ))]
    Run(ask::Arguments),
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list::run(&arguments, context).await,
        Command::Show(arguments) => show::run(arguments, context).await,
        Command::Create(arguments) => write::create(arguments, context).await,
        Command::Update(arguments) => write::update(arguments, context).await,
        Command::LifeCycle(command) => life_cycle::run(command, AGENTS, context).await,
        Command::Delete(arguments) => life_cycle::delete(&arguments, AGENTS, context).await,
        Command::Run(arguments) => ask::run(arguments, context).await,
    }
}

/// Returns the path of an agent.
pub(super) fn path(agent: &str) -> String {
    format!("/api/agents/{}", segment(agent))
}
