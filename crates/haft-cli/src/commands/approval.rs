//! `haft approval`: decides about calls that wait for a person.

use std::collections::HashSet;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use haft_api::approval::{ApprovalList, ApprovalView, GrantList};
use serde_json::{Map, Value, json};

use crate::client::{EventStream, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// How often `--watch` looks for new approvals without a server, and how long it waits for one that has stopped.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);
/// The topic of the events that `--watch` waits for.
const TOPIC: &str = "approvals";

/// Decide about calls that wait for a person
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List approvals, newest first
    #[command(visible_alias = "ls", after_help = examples!("haft approval list", "haft approval list --watch"))]
    List(List),
    /// Show one approval with its arguments
    #[command(after_help = examples!("haft approval show 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Show {
        /// Id of the approval
        id: String,
    },
    /// Approve a call; it runs once
    #[command(after_help = examples!(
        "haft approval approve 019a8f50-b7b6-7a01-9a05-a22a6e0af101",
        "haft approval approve 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --remember token"
    ))]
    Approve(Approve),
    /// Deny a call; it never runs
    #[command(after_help = examples!("haft approval deny 019a8f50-b7b6-7a01-9a05-a22a6e0af101 --reason \"not today\""))]
    Deny {
        /// Id of the approval
        id: String,
        /// Why, for the requester
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
    /// List the approvals that are remembered for later calls
    #[command(after_help = examples!("haft approval grants"))]
    Grants,
    /// Forget a remembered approval: later calls ask again
    #[command(after_help = examples!("haft approval forget 019a8f50-b7b6-7a01-9a05-a22a6e0af101"))]
    Forget {
        /// Id of the remembered approval
        id: String,
    },
}

/// List approvals, newest first
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Only approvals in this state
    #[arg(long, value_name = "STATUS", default_value = "waiting")]
    status: Status,
    /// Keep running and print approvals as they arrive
    #[arg(long)]
    watch: bool,
}

/// The state of an approval.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Status {
    /// Every state
    All,
    /// Nobody has decided yet
    Waiting,
    /// Approved
    Approved,
    /// Denied
    Denied,
    /// Nobody decided in time
    Expired,
    /// The call was cancelled
    Cancelled,
}

/// Approve a call; it runs once
#[derive(Debug, Args)]
pub(crate) struct Approve {
    /// Id of the approval
    id: String,
    /// Arguments to run with instead, as a JSON object
    #[arg(long, value_name = "JSON")]
    args: Option<String>,
    /// Remember the decision for the same tool and arguments
    #[arg(long, value_name = "SCOPE")]
    remember: Option<Scope>,
    /// Remember it for any arguments
    #[arg(long, requires = "remember")]
    any_args: bool,
}

/// How far a decision is remembered.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Scope {
    /// The same caller in the same chat
    Session,
    /// The same caller
    Token,
    /// Every caller of the tenant
    Tool,
}

/// Runs the command.
pub(crate) async fn run(command: Command, context: &Context) -> Result<(), CliError> {
    match command {
        Command::List(list) => self::list(list, context).await,
        Command::Show { id } => show(&id, context).await,
        Command::Approve(approve) => self::approve(approve, context).await,
        Command::Deny { id, reason } => {
            let body = reason.map_or_else(|| json!({}), |reason| json!({"reason": reason}));
            decide(&id, "deny", body, context).await
        }
        Command::Grants => grants(context).await,
        Command::Forget { id } => forget(&id, context).await,
    }
}

async fn grants(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/approval-grants?page_size=500")).await?;
    context.output.show(&data, |output, list: GrantList| {
        let rows = list.grants.into_iter().map(|grant| {
            vec![
                grant.id.to_string(),
                grant.tool.unwrap_or_default(),
                grant.cause,
                grant.remember.scope.as_str().to_owned(),
                if grant.remember.any_args { "any" } else { "the same" }.to_owned(),
                grant.granted_by,
                view::moment(grant.created_at),
            ]
        });
        let header = ["ID", "TOOL", "CAUSE", "FOR", "ARGUMENTS", "APPROVED BY", "CREATED"];
        output.list(&header, &[], rows.collect())
    })
}

async fn forget(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::delete(format!("/api/approval-grants/{}", segment(id)))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("forgot the remembered approval `{id}`"));
        Ok(())
    })
}

async fn list(list: List, context: &Context) -> Result<(), CliError> {
    let status = list.status.to_possible_value().map(|value| value.get_name().to_owned());
    let status = status.filter(|status| status != "all");
    let request = || Request::get("/api/approvals?page_size=100").query_some("status", status.as_deref());
    let data = context.request(request()).await?;
    context.output.show(&data, |output, list: ApprovalList| {
        let rows = list.approvals.iter().map(row).collect();
        let header = ["ID", "TOOL", "ARGUMENTS", "ASKED BY", "STATUS", "CREATED", "EXPIRES"];
        output.list(&header, &[], rows)
    })?;
    if !list.watch {
        return Ok(());
    }
    let mut seen: HashSet<String> = ids(&data)?.into_iter().collect();
    let mut events = None;
    loop {
        wait_for_change(&mut events, context).await?;
        let data = context.request(request()).await?;
        let approvals = ids(&data)?.into_iter().zip(view::list(&data, "approvals"));
        let fresh: Vec<&Value> =
            approvals.filter(|(id, _)| seen.insert(id.clone())).map(|(_, one)| one).collect();
        for approval in fresh.into_iter().rev() {
            context
                .output
                .show(approval, |output, view: ApprovalView| output.line(&row(&view).join("  ")))?;
        }
    }
}

/// Returns the ids of listed approvals.
fn ids(list: &Value) -> Result<Vec<String>, CliError> {
    let list: ApprovalList = view::read(list)?;
    Ok(list.approvals.iter().map(|approval| approval.id.to_string()).collect())
}

/// Waits for the next event of the server, or for the polling interval if there is no event stream.
async fn wait_for_change(events: &mut Option<EventStream>, context: &Context) -> Result<(), CliError> {
    if events.is_none() {
        let client = context.client().await?;
        *events = client.events(TOPIC).await?;
        client.close().await;
    }
    let is_open = match events {
        Some(stream) => stream.next().await.is_some(),
        None => false,
    };
    if !is_open {
        *events = None;
        tokio::time::sleep(WATCH_INTERVAL).await;
    }
    Ok(())
}

fn row(approval: &ApprovalView) -> Vec<String> {
    vec![
        approval.id.to_string(),
        approval.tool.clone(),
        haft_core::problem::excerpt(&approval.args.to_string(), 60),
        approval.requested_by.clone(),
        approval.status.as_str().to_owned(),
        view::moment(approval.created_at),
        view::moment(approval.expires_at),
    ]
}

async fn show(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("/api/approvals/{}", segment(id)))).await?;
    context.output.show(&data, |output, approval: ApprovalView| print(approval, output))
}

fn print(approval: ApprovalView, output: &crate::output::Output) -> Result<(), CliError> {
    let lines = [
        ("tool", format!("{} (revision {})", approval.tool, approval.revision)),
        ("asked by", format!("{} through {}", approval.requested_by, approval.surface)),
        ("status", approval.status.as_str().to_owned()),
        ("decided by", approval.decided_by.unwrap_or_default()),
        ("reason", approval.reason.unwrap_or_default()),
        ("call", approval.call_id.to_string()),
        ("expires", view::moment(approval.expires_at)),
        ("arguments", format!("{:#}", approval.args)),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
        output.line(&format!("{name:<11} {value}"))?;
    }
    Ok(())
}

async fn approve(approve: Approve, context: &Context) -> Result<(), CliError> {
    let mut body = Map::new();
    if let Some(args) = approve.args {
        let args: Value = serde_json::from_str(&args)
            .map_err(|error| CliError::usage(format!("invalid `--args`: expected a JSON object: {error}")))?;
        body.insert("args".to_owned(), args);
    }
    if let Some(scope) = approve.remember.and_then(|scope| scope.to_possible_value()) {
        body.insert("remember".to_owned(), json!({"scope": scope.get_name(), "any_args": approve.any_args}));
    }
    decide(&approve.id, "approve", Value::Object(body), context).await
}

async fn decide(id: &str, step: &str, body: Value, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("/api/approvals/{}/{step}", segment(id)), body)).await?;
    context.output.show(&data, |output, decided: ApprovalView| {
        output.note(&format!("{} `{}`: call {}", decided.status.as_str(), decided.tool, decided.call_id));
        Ok(())
    })
}
