//! `haft tool test`: runs a tool as the live tester does.

use clap::Args;
use serde_json::json;

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
    context.output.data(&data, |output| {
        output.note(&format!(
            "{} after {} ms",
            view::text(&data, "status"),
            view::text(&data, "execution_time_ms")
        ));
        data.get("output")
            .filter(|value| !value.is_null())
            .map_or(Ok(()), |value| output.line(&view::readable(value)))
    })?;
    if view::text(&data, "status") == "success" {
        return Ok(());
    }
    let error = data.get("error").unwrap_or(&data);
    let message = [view::text(error, "message"), view::text(&data, "error"), view::text(&data, "output")];
    let message = message.into_iter().find(|text| !text.is_empty()).unwrap_or_default();
    Err(CliError::CallFailed { code: view::text(error, "code"), message })
}
