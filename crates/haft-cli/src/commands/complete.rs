//! `haft __complete`: completes a command line for the scripts of `haft completions`.

use std::time::Duration;

use clap::{Args, CommandFactory as _};

use crate::cli::Cli;
use crate::client::connect_to_server;
use crate::completion::{Candidate, Completion, Kind, complete, context_names, names};
use crate::context::Context;
use crate::error::CliError;

/// The time limit for names from the server: the user waits for the completion.
const TIMEOUT: Duration = Duration::from_millis(900);

/// Complete a command line
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The words after `haft` up to the cursor; the last one may be empty
    #[arg(last = true)]
    words: Vec<String>,
}

/// Runs the command. Errors are not reported, because the text would appear in the command line.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let mut root = Cli::command();
    root.build();
    let (completion, globals) = complete(&root, &arguments.words);
    let context = context.with_connection(globals);
    let names = tokio::time::timeout(TIMEOUT, known_names(&completion, &context)).await.unwrap_or_default();
    for Candidate { word, help } in completion.candidates(names) {
        let help = help.lines().next().unwrap_or_default().replace('\t', " ");
        context.output.line(&format!("{word}\t{help}"))?;
    }
    Ok(())
}

async fn known_names(completion: &Completion, context: &Context) -> Vec<Candidate> {
    let Some(kind) = completion.kind else { return Vec::new() };
    if kind == Kind::Context {
        return context_names(&context.environment);
    }
    let Ok(Some(client)) = connect_to_server(context).await else { return Vec::new() };
    let found = names(kind, &completion.prefix, &client).await.unwrap_or_default();
    client.close().await;
    found
}
