//! `haft tool test`: runs the newest revision of a tool, without approval: once, or with its saved examples.

use clap::Args;
use haft_api::trial::{ExampleRun, ExampleStatus, TestResult, TestStatus};
use serde_json::{Value, json};

use super::arguments::CallArguments;
use crate::client::{Request, explain, tool_segment};
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
    let path = format!("/api/tools/{}/test", tool_segment(&arguments.tool));
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
    let result: TestResult = view::read(&data)?;
    let succeeded = matches!(result.status, TestStatus::Success);
    context.output.data(&data, |output| {
        let time = view::word(&result.execution_time_ms);
        output.note(&format!("{} after {time} ms", view::word(&result.status)));
        if succeeded { output.line(&view::readable(&result.output)) } else { Ok(()) }
    })?;
    if succeeded {
        return Ok(());
    }
    Err(CliError::CallFailed {
        code: result.error_code.map(|code| code.as_str().to_owned()).unwrap_or_default(),
        message: view::readable(&result.output),
        details: Value::Null,
    })
}

/// Runs the saved examples of a tool.
async fn run_examples(tool: &str, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let path = format!("/api/tools/{}/examples/run", tool_segment(tool));
    let response = match client.data(Request::post(path, json!({}))).await {
        Err(error) => Err(explain(error, tool, &client).await),
        response => response,
    };
    client.close().await;
    let data = response?;
    let ExampleRun { results } = view::read(&data)?;
    context.output.data(&data, |output| {
        if results.is_empty() {
            output.note(&format!("`{tool}` has no examples"));
            return Ok(());
        }
        let rows = results
            .iter()
            .map(|one| vec![view::word(&one.status), one.name.clone(), view::optional(one.message.as_ref())]);
        output.table(&["RESULT", "EXAMPLE", "MESSAGE"], rows.collect())
    })?;
    match results.iter().filter(|one| one.status != ExampleStatus::Passed).count() {
        0 => Ok(()),
        failed => Err(CliError::SomeFailed { failed, total: results.len(), items: "examples failed" }),
    }
}
