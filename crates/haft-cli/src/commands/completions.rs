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

/// Runs the command. The scripts of bash, zsh and fish call `haft __complete`, which also completes names; those of the
/// other shells are generated and complete only commands and options.
pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    match arguments.shell {
        Shell::Bash => context.output.line(include_str!("completions/haft.bash")),
        Shell::Zsh => context.output.line(include_str!("completions/haft.zsh")),
        Shell::Fish => context.output.line(include_str!("completions/haft.fish")),
        other => {
            let mut script = Vec::new();
            generate(other, &mut Cli::command(), "haft", &mut script);
            context.output.line(&String::from_utf8_lossy(&script))
        }
    }
}
