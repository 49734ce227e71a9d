//! `haft completions`: prints a shell completion script.

use clap::{Args, CommandFactory as _};
use clap_complete::{Shell, generate};

use crate::cli::Cli;
use crate::context::Context;
use crate::error::CliError;

/// Print a shell completion script
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Shell
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    let mut script = Vec::new();
    generate(arguments.shell, &mut Cli::command(), "haft", &mut script);
    context.output.line(&String::from_utf8_lossy(&script))
}
