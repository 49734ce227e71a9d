//! The command line: what clap reads, and which command it means.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use haft_core::secret::Secret;

use crate::commands::{
    audit, bundle, call, completions, doctor, import, init, mcp, mcp_server, reindex, secret, serve, token,
    tool,
};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Color;

/// One handle on every tool that your agents use
///
/// Commands talk to a running server where there is one, and otherwise open the home folder themselves.
#[derive(Debug, Parser)]
#[command(name = "haft", version, max_term_width = 100)]
#[command(
    after_help = "Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 conflict, 5 tool call failed, \
                        6 server unreachable, 7 denied, 8 invalid"
)]
pub(crate) struct Cli {
    /// The global flags.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Flags of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// The home folder [env: `HAFT_HOME`] [default: ~/.haft]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) home: Option<PathBuf>,
    /// The running server to talk to [env: `HAFT_SERVER`]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) server: Option<String>,
    /// The token to use [env: `HAFT_TOKEN`] [default: the one in the home folder]
    #[arg(long, global = true, value_name = "TOKEN", value_parser = read_token)]
    pub(crate) token: Option<Secret>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Whether to use colors
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
    /// What to log, such as `debug` or `haft_server=debug,warn` [env: `HAFT_LOG`]
    #[arg(long, global = true, value_name = "FILTER")]
    pub(crate) log: Option<String>,
}

#[expect(clippy::unnecessary_wraps, reason = "the form of a value parser of clap")]
fn read_token(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text.to_owned()))
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the server
    Serve(serve::Arguments),
    /// Serve the tools to an MCP client over standard input and output
    Mcp(mcp::Arguments),
    /// Make a home folder with a sample configuration and an example tool
    Init,
    /// Check the installation and say what is wrong
    Doctor,
    /// Build the index anew from the definition files
    Reindex,
    /// List, make, change and call tools
    #[command(subcommand)]
    Tool(tool::Command),
    /// Use the tools of MCP servers
    #[command(subcommand)]
    McpServer(mcp_server::Command),
    /// Make tools of API descriptions
    #[command(subcommand)]
    Import(import::Command),
    /// Keep the secrets that tools name as `${NAME}`
    #[command(subcommand)]
    Secret(secret::Command),
    /// List, make and switch bundles of tools
    #[command(subcommand)]
    Bundle(bundle::Command),
    /// Make and revoke access tokens
    #[command(subcommand)]
    Token(token::Command),
    /// Look at recorded calls
    #[command(subcommand)]
    Call(call::Command),
    /// List what was changed, by whom, newest first
    Audit(audit::Arguments),
    /// Print the completions of a shell
    Completions(completions::Arguments),
}

impl Command {
    /// Runs the command.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Serve(arguments) => serve::run(arguments, context).await,
            Self::Mcp(arguments) => mcp::run(arguments, context).await,
            Self::Init => init::run(context),
            Self::Doctor => doctor::run(context).await,
            Self::Reindex => reindex::run(context).await,
            Self::Tool(command) => command.run(context).await,
            Self::McpServer(command) => mcp_server::run(command, context).await,
            Self::Import(command) => import::run(command, context).await,
            Self::Secret(command) => secret::run(command, context).await,
            Self::Bundle(command) => bundle::run(command, context).await,
            Self::Token(command) => token::run(command, context).await,
            Self::Call(command) => call::run(command, context).await,
            Self::Audit(arguments) => audit::run(arguments, context).await,
            Self::Completions(arguments) => completions::run(&arguments, context),
        }
    }
}
