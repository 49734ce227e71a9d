//! `haft run`: shows, follows and stops runs of agents.

use clap::{Args, Subcommand};
use haft_api::run::{RunList, RunView};
use haft_core::run::{RunUsage, StepError};
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::agent::{Lines, Watch, ended};
use crate::client::{LiveClient, Request, connect_live, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::{Form, Output};
use crate::view;

/// Show, follow and stop runs of agents
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List runs, newest first
    #[command(visible_alias = "ls", after_help = examples!("haft run list", "haft run list --agent assistant --status error"))]
    List(List),
    /// Show a run with its answer
    #[command(after_help = examples!("haft run show 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Show {
        /// Id of the run
        id: String,
    },
    /// Print what a run does until it ends, from its start
    #[command(after_help = concat!(
        "Calls that need approval are asked on a terminal. Ctrl-C stops watching; the run goes on.\n\n",
        examples!("haft run watch 019a8f50-b7b6-7a01-9a05-a22a6e0af101")
    ))]
    Watch {
        /// Id of the run
        id: String,
    },
    /// Stop a run
    #[command(after_help = examples!("haft run cancel 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Cancel {
        /// Id of the run
        id: String,
    },
}

/// List runs, newest first
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only runs of this agent: slug or id
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only runs with this status
    #[arg(long, value_parser = ["pending", "running", "awaiting_approval", "success", "error", "cancelled"])]
    status: Option<String>,
    /// Only runs that answer in this chat
    #[arg(long, value_name = "ID")]
    chat: Option<String>,
    /// Only runs that this run started
    #[arg(long, value_name = "ID")]
    parent: Option<String>,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value = "20", value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List(arguments) => list(arguments, context).await,
        Command::Show { id } => {
            let data = context.request(Request::get(path(&id))).await?;
            context.output.show(&data, |output, run: RunView| show(output, &run))
        }
        Command::Watch { id } => {
            let live = connect_live(context).await?;
            let watched = watch(&live, &id, context).await;
            live.close().await;
            watched
        }
        Command::Cancel { id } => {
            let data = context.request(Request::post(format!("{}/cancel", path(&id)), json!({}))).await?;
            context.output.data(&data, |output| {
                output.note(&format!("stopping run `{id}`"));
                Ok(())
            })
        }
    }
}

fn path(id: &str) -> String {
    format!("/api/runs/{}", segment(id))
}

async fn list(arguments: List, context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/runs")
        .query("page_size", &arguments.limit.to_string())
        .query_some("agent", arguments.agent.as_deref())
        .query_some("status", arguments.status.as_deref())
        .query_some("chat_id", arguments.chat.as_deref())
        .query_some("parent_id", arguments.parent.as_deref());
    let data = context.request(request).await?;
    context.output.show(&data, |output, RunList { runs, .. }| {
        let rows = runs.into_iter().map(|run| {
            vec![
                run.id.to_string(),
                run.agent,
                run.status.as_str().to_owned(),
                run.usage.answers.to_string(),
                run.usage.calls.to_string(),
                view::moment(run.created_at),
                run.requested_by,
                run.error.as_ref().map(|error| error.code.clone()).unwrap_or_default(),
                view::optional(run.chat_id.as_ref()),
                view::optional(run.parent_run_id.as_ref()),
                view::moment(run.finished_at),
                run.error.map(|error| output.brief(&error.message, 60)).unwrap_or_default(),
            ]
        });
        let header = ["ID", "AGENT", "STATUS", "ANSWERS", "CALLS", "CREATED", "CALLER", "ERROR"];
        output.list(&header, &["CHAT", "PARENT", "FINISHED", "MESSAGE"], rows.collect())
    })
}

fn show(output: &Output, run: &RunView) -> Result<(), CliError> {
    let mut lines = vec![
        format!("run       {}", run.id),
        format!("agent     {} (revision {})", run.agent, run.agent_revision),
        format!("status    {}", run.status),
        format!("caller    {} via {}", run.requested_by, run.surface),
        format!("created   {}", view::moment(run.created_at)),
    ];
    for (label, at) in [("started   ", run.started_at), ("finished  ", run.finished_at)] {
        lines.extend(at.map(|at| format!("{label}{}", view::moment(at))));
    }
    for (label, id) in [("chat      ", run.chat_id), ("part of   ", run.parent_run_id)] {
        lines.extend(id.map(|id| format!("{label}{id}")));
    }
    let RunUsage { answers, calls, input_tokens, output_tokens, .. } = run.usage;
    lines.push(format!(
        "used      {answers} answers, {calls} calls, {input_tokens} input tokens, {output_tokens} output tokens"
    ));
    for call in &run.waiting {
        lines.push(format!("waits     for the approval {} of `{}`", call.approval_id, call.tool));
    }
    if let Some(StepError { code, message }) = &run.error {
        lines.push(format!("error     {code}: {message}"));
    }
    if let Some(answer) = &run.output {
        lines.push(format!("answer\n{}", view::readable(answer)));
    }
    output.line(&lines.join("\n"))
}

async fn watch(live: &LiveClient, id: &str, context: &Context) -> Result<(), CliError> {
    let listen = || signal(SignalKind::interrupt()).map_err(CliError::io("listen for signals"));
    let (mut leave, mut interrupt) = (listen()?, listen()?);
    let mut stream = live.client.stream(Request::get(format!("{}/events", path(id)))).await?;
    if context.output.form == Form::Json {
        while stream.next_event().await.is_some() {}
        let run = live.client.data(Request::get(path(id))).await?;
        context.output.data(&run, |_| Ok(()))?;
        return ended(&run, context);
    }
    let mut lines = Lines::of_terminal();
    let mut watch =
        Watch { client: &live.client, output: &context.output, lines: &mut lines, interrupt: &mut interrupt };
    let end = tokio::select! {
        // Polled first, so that Ctrl-C does not stop the run.
        biased;
        _ = leave.recv() => {
            context.output.note(&format!("the run goes on; stop it with `haft run cancel {id}`"));
            return Ok(());
        }
        end = watch.run(stream) => end?,
    };
    end.result()
}
