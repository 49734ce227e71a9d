//! `haft audit`: lists recorded changes.

use clap::Args;
use serde_json::Value;

use crate::client::{Client, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// List recorded changes, newest first
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Only this action, e.g. `tool.update`
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only targets that contain this text
    #[arg(long, value_name = "TEXT")]
    target: Option<String>,
    /// Only changes by the token with this name or id
    #[arg(long, value_name = "TOKEN")]
    actor: Option<String>,
    /// Only changes since a time (`2026-01-31T12:00:00Z`) or period (`24h`, `7d`)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Maximum number of records [default: 50; with `--format jsonl`, all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    limit: Option<u32>,
    /// Output format: a table, or one JSON object per line
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    format: Format,
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
    match arguments.format {
        Format::Table => list(&arguments, context).await,
        Format::Jsonl => export(&arguments, context).await,
    }
}

async fn list(arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    let limit = arguments.limit.unwrap_or(TABLE_RECORDS).min(MAX_PAGE);
    let data = context.request(request(arguments, limit, None)).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "records").iter().map(row).collect();
        output.table(&["WHEN", "WHO", "ACTION", "TARGET", "OUTCOME", "REQUEST"], rows)
    })
}

/// Prints one record per line, a page at a time.
async fn export(arguments: &Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let printed = export_pages(arguments, &client, context).await;
    client.close().await;
    printed
}

async fn export_pages(arguments: &Arguments, client: &Client, context: &Context) -> Result<(), CliError> {
    let mut left = arguments.limit.unwrap_or(u32::MAX);
    let mut page_token: Option<String> = None;
    while left > 0 {
        let data = client.data(request(arguments, left.min(MAX_PAGE), page_token.as_deref())).await?;
        let records = view::list(&data, "records");
        for record in records {
            context.output.line(&record.to_string())?;
        }
        left = left.saturating_sub(u32::try_from(records.len()).unwrap_or(u32::MAX));
        page_token = data.get("next_page_token").and_then(Value::as_str).map(str::to_owned);
        if page_token.is_none() {
            break;
        }
    }
    Ok(())
}

fn request(arguments: &Arguments, page_size: u32, page_token: Option<&str>) -> Request {
    Request::get("/api/audit")
        .query("page_size", &page_size.to_string())
        .query_some("page_token", page_token)
        .query_some("action", arguments.action.as_deref())
        .query_some("target", arguments.target.as_deref())
        .query_some("actor", arguments.actor.as_deref())
        .query_some("since", arguments.since.as_deref())
}

fn row(record: &Value) -> Vec<String> {
    let text = |key| view::text(record, key);
    vec![
        view::time(record, "at"),
        text("actor"),
        text("action"),
        text("target"),
        text("outcome"),
        text("request_id"),
    ]
}
