//! `haft call`: shows recorded calls.

use clap::{Args, Subcommand};
use haft_api::call::{CallList, CallView};
use serde_json::json;

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
    List(Box<List>),
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
    /// Only calls with one of these statuses, such as `error,denied`
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only calls of the token with this name
    #[arg(long, value_name = "NAME")]
    caller: Option<String>,
    /// Only calls that came through this interface: `rest`, `mcp`, `cli`, `test`, or a tool that calls others
    #[arg(long, value_name = "SURFACE")]
    surface: Option<String>,
    /// Only calls that failed with this code, such as `timeout`
    #[arg(long, value_name = "CODE")]
    error: Option<String>,
    /// Only calls of this chat
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// Only calls that this call made
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Only calls from this time on: a time, or a period such as `24h`
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only calls before this time, in the same forms
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Part of the tool, the arguments, the value, the error or the output
    #[arg(short = 'q', long = "search", value_name = "TEXT")]
    query: Option<String>,
    /// Maximum number of calls
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list(*arguments, context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Result { id, pointer } => result(&id, pointer.as_deref(), context).await,
        Command::Cancel { id } => cancel(&id, context).await,
    }
}

async fn list(arguments: List, context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/calls")
        .query("page_size", &arguments.limit.to_string())
        .query_some("tool", arguments.tool.as_deref())
        .query_some("status", arguments.status.as_deref())
        .query_some("caller", arguments.caller.as_deref())
        .query_some("surface", arguments.surface.as_deref())
        .query_some("error_code", arguments.error.as_deref())
        .query_some("chat_id", arguments.chat.as_deref())
        .query_some("parent_id", arguments.parent.as_deref())
        .query_some("since", arguments.since.as_deref())
        .query_some("until", arguments.until.as_deref())
        .query_some("q", arguments.query.as_deref());
    let data = context.request(request).await?;
    context.output.show(&data, |output, list: CallList<'static>| {
        let rows = list.calls.iter().map(|call| {
            vec![
                call.id.to_string(),
                call.tool.to_string(),
                call.status.as_str().to_owned(),
                milliseconds(call),
                view::moment(call.started_at),
                call.caller.to_string(),
                call.error.as_ref().map(|error| error.code.as_str().to_owned()).unwrap_or_default(),
                call.surface.to_string(),
                view::word(&call.mode),
                call.revision.to_string(),
                view::optional(call.chat_id.as_ref()),
                view::optional(call.parent_id.as_ref()),
                call.error.as_ref().map(|error| output.brief(&error.message, 60)).unwrap_or_default(),
            ]
        });
        let header = ["ID", "TOOL", "STATUS", "MS", "STARTED", "CALLER", "ERROR"];
        let wide = ["SURFACE", "MODE", "REVISION", "CHAT", "PARENT", "MESSAGE"];
        output.list(&header, &wide, rows.collect())
    })
}

fn milliseconds(call: &CallView) -> String {
    call.duration_ms.map(|time| format!("{time:.1}")).unwrap_or_default()
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/calls/{}", segment(id)))).await?;
    context.output.show(&data, |output, call: CallView<'static>| show_call(output, &call))
}

fn show_call(output: &Output, call: &CallView) -> Result<(), CliError> {
    let mut lines = vec![
        format!("call       {}", call.id),
        format!("tool       {} (revision {})", call.tool, call.revision),
        format!("status     {}", call.status.as_str()),
        format!("mode       {}", call.mode.as_str()),
        format!("caller     {} via {}", call.caller, call.surface),
        format!("started    {}", view::moment(call.started_at)),
    ];
    // A running call has no duration yet.
    if call.duration_ms.is_some() {
        lines.push(format!("took       {} ms", milliseconds(call)));
    }
    // A record whose content was removed has no arguments.
    let args = if call.args.is_null() { String::new() } else { call.args.to_string() };
    lines.push(format!("arguments  {args}"));
    if let Some(error) = &call.error {
        lines.push(format!("error      {}: {}", error.code.as_str(), error.message));
    }
    if let Some(process) = &call.process {
        let ends = [
            ("exit code  ", view::optional(process.exit_code.as_ref())),
            ("signal     ", view::optional(process.signal.as_ref())),
            ("limit      ", view::optional(process.limit.as_ref())),
        ];
        let ends = ends.into_iter().filter(|(_, text)| !text.is_empty());
        lines.extend(ends.map(|(label, text)| format!("{label}{text}")));
        for (text, label) in [(&process.stderr, "standard error"), (&process.stdout, "standard output")] {
            if !text.is_empty() {
                lines.push(format!("{label}\n{}", text.trim_end()));
            }
        }
    }
    if let Some(value) = &call.value {
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
