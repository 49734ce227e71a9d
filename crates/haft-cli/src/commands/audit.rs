//! `haft audit`: lists recorded changes.

use clap::Args;
use serde_json::Value;

use crate::client::Request;
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
    /// Maximum number of records
    #[arg(long, value_name = "N", default_value = "50", value_parser = clap::value_parser!(u32).range(1..=500))]
    limit: u32,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let request = Request::get("/api/audit")
        .query("page_size", &arguments.limit.to_string())
        .query_some("action", arguments.action.as_deref())
        .query_some("target", arguments.target.as_deref())
        .query_some("actor", arguments.actor.as_deref())
        .query_some("since", arguments.since.as_deref());
    let data = context.request(request).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "records").iter().map(row).collect();
        output.table(&["WHEN", "WHO", "ACTION", "TARGET", "OUTCOME", "REQUEST"], rows)
    })
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
