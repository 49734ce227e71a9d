//! `haft audit`: lists and exports recorded changes and calls.

use clap::{Args, Subcommand};
use haft_api::audit::AuditList;
use haft_core::audit::AuditEntry;

use crate::client::{Client, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Form;
use crate::view;

/// List recorded changes and calls, newest first
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    list: List,
}

/// What to do with the records.
#[derive(Debug, Subcommand)]
enum Command {
    /// Print all matching records as JSON Lines, newest first
    #[command(after_help = examples!("haft audit export --since 7d > audit.jsonl", "haft audit export --kind calls --rule no-payments"))]
    Export(Export),
}

/// Print all matching records as JSON Lines, newest first
#[derive(Debug, Args)]
struct Export {
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of records [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: Option<u32>,
}

/// List recorded changes and calls
#[derive(Debug, Args)]
struct List {
    #[command(flatten)]
    filter: Filter,
    /// Maximum number of records [default: 50; with `--format jsonl`, all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: Option<u32>,
    /// Output format: a table, or one JSON object per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    format: Format,
}

/// Which records.
#[derive(Debug, Args)]
struct Filter {
    /// Kind of records: changes, calls, or both
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Kind::Changes)]
    kind: Kind,
    /// Only this action, e.g. `tool.update`
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only changes whose target contains this text
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// Only calls of this tool, and changes whose target contains it
    #[arg(long, value_name = "TOOL")]
    tool: Option<String>,
    /// Only records of the token with this name or id
    #[arg(long, value_name = "TOKEN")]
    actor: Option<String>,
    /// Only this outcome: `success` or an error code
    #[arg(long, value_name = "OUTCOME")]
    outcome: Option<String>,
    /// Only calls with this status
    #[arg(long, value_name = "STATUS")]
    status: Option<String>,
    /// Only calls with this decision: `allowed`, `denied`, `awaiting_approval`, `approved`, `rejected`, `expired`
    #[arg(long, value_name = "DECISION")]
    decision: Option<String>,
    /// Only calls that this policy rule decided about
    #[arg(long, value_name = "RULE")]
    rule: Option<String>,
    /// Only records since a time (`2026-01-31T12:00:00Z`) or period (`24h`, `7d`)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only records before a time or period
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// The kinds of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    Changes,
    Calls,
    All,
}

/// The output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Table,
    Jsonl,
}

/// The largest page that the server returns.
const MAX_PAGE: u32 = 500;
/// The number of records in a table, unless requested otherwise.
const TABLE_RECORDS: u32 = 50;

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let Arguments { command, list: List { filter, limit, format } } = arguments;
    match (command, format) {
        (Some(Command::Export(export)), _) => self::export(&export.filter, export.limit, context).await,
        (None, Format::Table) => list(&filter, limit, context).await,
        (None, Format::Jsonl) => export(&filter, limit, context).await,
    }
}

async fn list(filter: &Filter, limit: Option<u32>, context: &Context) -> Result<(), CliError> {
    let limit = limit.unwrap_or(TABLE_RECORDS).min(MAX_PAGE);
    let data = context.request(request(filter, limit, None)).await?;
    context.output.show(&data, |output, list: AuditList| {
        if output.form == Form::Name {
            let ids = list.records.iter().map(|entry| vec![entry.record.id.to_string()]);
            return output.list(&[], &[], ids.collect());
        }
        let rows = list.records.into_iter().map(row).collect();
        output.list(&["WHEN", "WHO", "ACTION", "TARGET", "OUTCOME", "REQUEST"], &["ID"], rows)
    })
}

/// Prints one record per line, a page at a time.
async fn export(filter: &Filter, limit: Option<u32>, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let printed = export_pages(filter, limit, &client, context).await;
    client.close().await;
    printed
}

async fn export_pages(
    filter: &Filter,
    limit: Option<u32>,
    client: &Client,
    context: &Context,
) -> Result<(), CliError> {
    let mut left = limit.unwrap_or(u32::MAX);
    let mut page_token: Option<String> = None;
    while left > 0 {
        let data = client.data(request(filter, left.min(MAX_PAGE), page_token.as_deref())).await?;
        let records = view::list(&data, "records");
        for record in records {
            context.output.line(&record.to_string())?;
        }
        left = left.saturating_sub(u32::try_from(records.len()).unwrap_or(u32::MAX));
        page_token = view::read::<AuditList>(&data)?.next_page_token;
        if page_token.is_none() {
            break;
        }
    }
    Ok(())
}

fn request(filter: &Filter, page_size: u32, page_token: Option<&str>) -> Request {
    let kind = match filter.kind {
        Kind::Changes => None,
        Kind::Calls => Some("calls"),
        Kind::All => Some("all"),
    };
    Request::get("/api/audit")
        .query("page_size", &page_size.to_string())
        .query_some("page_token", page_token)
        .query_some("kind", kind)
        .query_some("action", filter.action.as_deref())
        .query_some("target", filter.target.as_deref())
        .query_some("tool", filter.tool.as_deref())
        .query_some("actor", filter.actor.as_deref())
        .query_some("outcome", filter.outcome.as_deref())
        .query_some("status", filter.status.as_deref())
        .query_some("decision", filter.decision.as_deref())
        .query_some("rule", filter.rule.as_deref())
        .query_some("since", filter.since.as_deref())
        .query_some("until", filter.until.as_deref())
}

fn row(AuditEntry { record, .. }: AuditEntry) -> Vec<String> {
    vec![
        view::moment(record.at),
        record.actor,
        record.action,
        record.target,
        record.outcome,
        record.request_id,
        record.id.to_string(),
    ]
}
