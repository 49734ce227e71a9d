//! The binary `haft`: command line, configuration and terminal output.

#[macro_use]
mod help;

mod cli;
mod client;
mod commands;
mod completion;
mod config;
mod context;
mod contexts;
mod draft;
mod engine;
mod environment;
mod error;
mod input;
mod logging;
mod mcp_clients;
mod output;
mod progress;
mod server_file;
mod server_url;
mod shell;
mod target;
mod usage_error;
mod view;

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::cli::{Cli, Command};
use crate::context::Context;
use crate::environment::Environment;
use crate::error::CliError;

/// Calls make many small, short-lived allocations, which this allocator is good at.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // The cryptography provider of all TLS connections; installed only here.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let Cli { globals, command } = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage_error::report(&error, std::env::args_os()),
    };
    let context = Context::new(globals, Environment::of_process());
    match run(command, &context) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error @ CliError::Differences) => error.exit().into(),
        Err(error) => {
            context.output.error(&error);
            error.exit().into()
        }
    }
}

fn run(command: Command, context: &Context) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(CliError::io("start the runtime"))?;
    let result = runtime.block_on(command.run(context));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}
