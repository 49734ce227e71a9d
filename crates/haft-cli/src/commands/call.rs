//! `haft call`: shows recorded calls.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::view;

/// Show recorded calls
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List calls, newest first
    #[command(visible_alias = "ls", after_help = examples!("haft call list --tool weather --status error"))]
    List(List),
    /// Show a call with its arguments and outcome
    #[command(after_help = examples!("haft call show 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Show {
        /// Id of the call
        id: String,
    },
    /// Print the result of a call, whole even if it is large
    #[command(after_help = examples!(
        "haft call result 019a8f50-b7b6-7a01-9a05-a22a6e0af101 > result.json",
        "haft call result 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --pointer /items/0",
    ))]
    Result {
        /// Id of the call, or a handle such as `$result:019a8f50-…#/items`
        id: String,
        /// Part of the result, as a JSON pointer
        #[arg(long, value_name = "POINTER")]
        pointer: Option<String>,
    },
    /// Cancel a running call
    #[command(after_help = examples!("haft call cancel 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Cancel {
        /// Id of the call
        id: String,
    },
}

/// List calls, newest first
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only calls of this tool
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only calls with this status
    #[arg(long, value_parser = ["pending", "running", "success", "error", "cancelled"])]
    status: Option<String>,
    /// Maximum number of calls
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list(arguments, context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Result { id, pointer } => result(&id, pointer.as_deref(), context).await,
        Command::Cancel { id } => cancel(&id, context).await,
    }
}

async fn list(arguments: List, context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/calls")
        .query("page_size", &arguments.limit.to_string())
        .query_some("tool", arguments.tool.as_deref())
        .query_some("status", arguments.status.as_deref());
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "calls").iter().map(|call| {
            vec![
                view::text(call, "id"),
                view::text(call, "tool"),
                view::text(call, "status"),
                milliseconds(call),
                view::time(call, "started_at"),
                view::text(call, "caller"),
                view::text(call, "error.code"),
            ]
        });
        output.table(&["ID", "TOOL", "STATUS", "MS", "STARTED", "CALLER", "ERROR"], rows.collect())
    })
}

fn milliseconds(call: &Value) -> String {
    call.get("duration_ms").and_then(Value::as_f64).map(|time| format!("{time:.1}")).unwrap_or_default()
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/calls/{}", segment(id)))).await?;
    context.output.data(&data, |output| show_call(output, &data))
}

fn show_call(output: &Output, call: &Value) -> Result<(), CliError> {
    let mut lines = vec![
        format!("call       {}", view::text(call, "id")),
        format!("tool       {} (revision {})", view::text(call, "tool"), view::text(call, "revision")),
        format!("status     {}", view::text(call, "status")),
        format!("mode       {}", view::text(call, "mode")),
        format!("caller     {} via {}", view::text(call, "caller"), view::text(call, "surface")),
        format!("started    {}", view::time(call, "started_at")),
    ];
    // A running call has no duration yet.
    if call.get("duration_ms").is_some_and(|time| !time.is_null()) {
        lines.push(format!("took       {} ms", milliseconds(call)));
    }
    lines.push(format!("arguments  {}", view::text(call, "args")));
    if let Some(error) = call.get("error").filter(|error| !error.is_null()) {
        lines.push(format!("error      {}: {}", view::text(error, "code"), view::text(error, "message")));
    }
    if let Some(process) = call.get("process").filter(|process| !process.is_null()) {
        for (key, label) in
            [("exit_code", "exit code  "), ("signal", "signal     "), ("limit", "limit      ")]
        {
            let text = view::text(process, key);
            if !text.is_empty() {
                lines.push(format!("{label}{text}"));
            }
        }
        for (key, label) in [("stderr", "standard error"), ("stdout", "standard output")] {
            let text = view::text(process, key);
            if !text.is_empty() {
                lines.push(format!("{label}\n{}", text.trim_end()));
            }
        }
    }
    if let Some(value) = call.get("value") {
        lines.push(format!("value\n{}", view::readable(value)));
    }
    output.line(&lines.join("\n"))
}

async fn result(id: &str, pointer: Option<&str>, context: &Context) -> Result<(), CliError> {
    let place = id.strip_prefix("$result:").unwrap_or(id);
    let (id, of_handle) = place.split_once('#').map_or((place, None), |(id, pointer)| (id, Some(pointer)));
    let request = Request::get(format!("/api/calls/{}/result", segment(id)))
        .query_some("pointer", pointer.or(of_handle));
    let client = context.client().await?;
    let value = client.send(request).await;
    client.close().await;
    let value = value?;
    context.output.data(&value, |output| output.line(&view::readable(&value)))
}

async fn cancel(id: &str, context: &Context) -> Result<(), CliError> {
    let data =
        context.request(Request::post(format!("/api/calls/{}/cancel", segment(id)), json!({}))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("cancelling call `{id}`"));
        Ok(())
    })
}
