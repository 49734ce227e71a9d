//! `haft tool test`: runs a tool as the live tester does.

use clap::Args;
use serde_json::{Value, json};

use super::arguments::CallArguments;
use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Run a tool as the live tester does
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The tool
    tool: String,
    #[command(flatten)]
    values: CallArguments,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let path = format!("/api/tools/{}/test", segment(&arguments.tool));
    let answer = match arguments.values.read(&arguments.tool, &client).await {
        Ok(args) => client.data(Request::post(path, json!({"parameters": args}))).await,
        Err(error) => Err(error),
    };
    client.close().await;
    let data = answer?;
    let success = view::text(&data, "status") == "success";
    context.output.data(&data, |output| {
        let time = view::text(&data, "execution_time_ms");
        output.note(&format!("{} after {time} ms", view::text(&data, "status")));
        if success {
            output.line(&view::readable(data.get("output").unwrap_or(&Value::Null)))
        } else {
            Ok(())
        }
    })?;
    if success {
        return Ok(());
    }
    Err(CliError::CallFailed { code: view::text(&data, "error_code"), message: view::text(&data, "output") })
}
