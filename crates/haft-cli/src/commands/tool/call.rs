//! `haft tool call`: calls a tool.

use clap::Args;
use haft_core::runnable::Mode;
use serde_json::{Value, json};

use super::arguments::{CallArguments, read_mode};
use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Call a tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
    #[command(flatten)]
    values: CallArguments,
    /// `debug` runs the newest revision, `production` the published one
    #[arg(long, value_parser = read_mode)]
    mode: Option<Mode>,
    /// Do not wait: print the id of the call, for `haft call show`
    #[arg(long = "async")]
    detached: bool,
    /// A key under which the same call never runs twice
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    if arguments.detached && client.engine().is_some() {
        client.close().await;
        let text = "`--async` needs a running server, because the call would end with this command";
        return Err(CliError::Usage(text.to_owned()));
    }
    let answer = match arguments.values.read(&arguments.tool, &client).await {
        Ok(args) => client.send(request(&arguments, &args)).await,
        Err(error) => Err(error),
    };
    client.close().await;
    print(&answer?, context)
}

fn request(arguments: &Arguments, args: &Value) -> Request {
    let mut request =
        Request::post(format!("/api/tools/{}/invoke", segment(&arguments.tool)), json!({"args": args}))
            .query_some("mode", arguments.mode.map(Mode::as_str));
    if arguments.detached {
        request = request.query("async", "true");
    }
    match &arguments.idempotency_key {
        Some(key) => request.header("idempotency-key", key.clone()),
        None => request,
    }
}

/// Prints the value; a failed call is an error with its own exit code.
fn print(answer: &Value, context: &Context) -> Result<(), CliError> {
    // A detached call answers in the envelope, a finished one with the outcome itself.
    let outcome = answer.get("data").unwrap_or(answer);
    context.output.data(outcome, |output| {
        let call = view::text(outcome, "call_id");
        match outcome.get("value") {
            Some(value) => output.line(&view::readable(value)),
            None if outcome.get("ok").is_none() => output.line(&call),
            None => Ok(()),
        }
    })?;
    let Some(error) = outcome.get("error").filter(|error| error.is_object()) else { return Ok(()) };
    Err(CliError::CallFailed { code: view::text(error, "code"), message: view::text(error, "message") })
}
