//! `haft tool test`: runs the newest revision of a tool, without approval: once, or with its saved examples.

use clap::Args;
use serde_json::{Value, json};

use super::arguments::CallArguments;
use crate::client::{Request, explain, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Run the newest revision of a tool, without approval
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
    #[command(flatten)]
    values: CallArguments,
    /// Run the saved examples of the tool and compare their values with the expected ones
    #[arg(long, conflicts_with_all = ["pairs", "object"])]
    examples: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    if arguments.examples {
        return run_examples(&arguments.tool, context).await;
    }
    let client = context.client().await?;
    let path = format!("/api/tools/{}/test", segment(&arguments.tool));
    let response = match arguments.values.read(&arguments.tool, &client, &context.output).await {
        Ok(args) => client.data(Request::post(path, json!({"parameters": args}))).await,
        Err(error) => Err(error),
    };
    let response = match response {
        Err(error) => Err(explain(error, &arguments.tool, &client).await),
        response => response,
    };
    client.close().await;
    let data = response?;
    let succeeded = view::text(&data, "status") == "success";
    context.output.data(&data, |output| {
        let time = view::text(&data, "execution_time_ms");
        output.note(&format!("{} after {time} ms", view::text(&data, "status")));
        if succeeded {
            output.line(&view::readable(data.get("output").unwrap_or(&Value::Null)))
        } else {
            Ok(())
        }
    })?;
    if succeeded {
        return Ok(());
    }
    Err(CliError::CallFailed {
        code: view::text(&data, "error_code"),
        message: view::text(&data, "output"),
        details: Value::Null,
    })
}

/// Runs the saved examples of a tool.
async fn run_examples(tool: &str, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let path = format!("/api/tools/{}/examples/run", segment(tool));
    let response = match client.data(Request::post(path, json!({}))).await {
        Err(error) => Err(explain(error, tool, &client).await),
        response => response,
    };
    client.close().await;
    let data = response?;
    let results = view::list(&data, "results");
    context.output.data(&data, |output| {
        if results.is_empty() {
            output.note(&format!("`{tool}` has no examples"));
            return Ok(());
        }
        let rows =
            results.iter().map(|one| ["status", "name", "message"].map(|field| view::text(one, field)));
        output.table(&["RESULT", "EXAMPLE", "MESSAGE"], rows.map(Vec::from).collect())
    })?;
    match results.iter().filter(|one| view::text(one, "status") != "passed").count() {
        0 => Ok(()),
        failed => Err(CliError::SomeFailed { failed, total: results.len(), items: "examples failed" }),
    }
}
