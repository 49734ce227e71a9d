//! `haft agent run`: asks an agent one question.

use std::path::Path;

use clap::Args;
use haft_core::runnable::Mode;
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::command::path;
use super::lines::Lines;
use super::watch::{Watch, ended};
use crate::client::{LiveClient, Request, connect_live};
use crate::commands::tool::parse_mode;
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::output::Form;

/// Ask an agent one question
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Agent: slug or id
    agent: String,
    /// Question; `-` reads stdin
    question: String,
    /// Variable of the instructions; a value that is JSON is taken as JSON (repeatable)
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = input::parse_pair)]
    variables: Vec<(String, String)>,
    /// Mode: `debug` runs the newest revision, `production` the published one
    #[arg(long, value_parser = parse_mode)]
    mode: Option<Mode>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let from_stdin = arguments.question == "-";
    let question = if from_stdin { input::read_text(Path::new("-"))? } else { arguments.question.clone() };
    let variables: Map<String, Value> = arguments.variables.iter().map(variable).collect();
    let request = Request::post(
        format!("{}/runs", path(&arguments.agent)),
        json!({"input": question, "variables": variables}),
    )
    .query_some("mode", arguments.mode.map(Mode::as_str));
    let live = connect_live(context).await?;
    let ended = match context.output.form {
        Form::Json => whole(&live, request, context).await,
        Form::Text | Form::Wide | Form::Name => {
            let lines = if from_stdin { Lines::none() } else { Lines::of_terminal() };
            stream(&live, request, lines, context).await
        }
    };
    live.close().await;
    ended
}

/// A value that is JSON is taken as JSON, any other as a text.
fn variable((name, text): &(String, String)) -> (String, Value) {
    (name.clone(), serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str())))
}

/// Waits for the end and prints the run as JSON.
async fn whole(live: &LiveClient, request: Request, context: &Context) -> Result<(), CliError> {
    let run = live.client.data(request).await?;
    context.output.data(&run, |_| Ok(()))?;
    ended(&run, context)
}

/// Prints the answer as it arrives.
async fn stream(
    live: &LiveClient,
    request: Request,
    mut lines: Lines,
    context: &Context,
) -> Result<(), CliError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(CliError::io("listen for signals"))?;
    let stream = live.client.stream(request).await?;
    let mut watch =
        Watch { client: &live.client, output: &context.output, lines: &mut lines, interrupt: &mut interrupt };
    let end = watch.run(stream).await?;
    end.result()
}
