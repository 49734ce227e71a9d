//! `haft import registry`: creates tools from rows of a `tool_registry` table.

use std::path::{Path, PathBuf};

use clap::Args;
use http::Method;
use serde_json::Value;

use crate::client::{Body, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::input;
use crate::view;

/// Create or update tools from rows of a `tool_registry` table: all of them or none
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Rows as JSON Lines, one row per line: a file, or `-` for stdin
    #[arg(value_name = "FILE")]
    source: PathBuf,
    /// Bundle for the tools [default: user-created]
    #[arg(long, value_name = "BUNDLE")]
    bundle: Option<String>,
    /// Import only rows with this `tenant_id`, and global ones
    #[arg(long, value_name = "ID")]
    tenant_id: Option<String>,
    /// Show what would be done, and store nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let text = input::read_text(Path::new(&arguments.source))?;
    let body = Body::Text { content_type: "application/x-ndjson", text };
    let request = Request::new(Method::POST, "/api/import/registry")
        .with_body(body)
        .query("dry_run", if arguments.dry_run { "true" } else { "false" })
        .query_some("bundle", arguments.bundle.as_deref())
        .query_some("tenant_id", arguments.tenant_id.as_deref());
    let report = context.request(request).await?;
    context.output.data(&report, |output| {
        output.table(&["LINE", "TOOL", "STATUS", "ACTION", "NOTE"], rows(&report))?;
        output.note(&summary(&report));
        Ok(())
    })?;
    let failed = count(&report, "failed");
    let total = view::list(&report, "rows").len();
    // Only a dry run reports invalid rows; otherwise the request fails.
    if failed > 0 {
        return Err(CliError::SomeFailed { failed, total, items: "rows are invalid" });
    }
    Ok(())
}

fn rows(report: &Value) -> Vec<Vec<String>> {
    let row = |row: &Value| {
        let mut notes: Vec<String> = Vec::new();
        notes.extend(Some(view::text(row, "reason")).filter(|reason| !reason.is_empty()));
        if view::is(row, "hidden") {
            notes.push("hidden in lists: a copy of a built-in tool".to_owned());
        }
        notes.extend(view::list(row, "warnings").iter().map(view::problem));
        vec![
            view::text(row, "line"),
            view::text(row, "tool"),
            view::text(row, "status"),
            view::text(row, "action"),
            notes.join("; "),
        ]
    };
    view::list(report, "rows").iter().map(row).collect()
}

fn count(report: &Value, key: &str) -> usize {
    let count = report.get(key).and_then(Value::as_u64).unwrap_or_default();
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn summary(report: &Value) -> String {
    let counted = ["created", "updated", "unchanged", "skipped", "failed"];
    let counts = counted.into_iter().filter(|key| count(report, key) > 0);
    let counts: Vec<String> = counts.map(|key| format!("{} {key}", count(report, key))).collect();
    let start = if view::is(report, "dry_run") { "dry run: " } else { "" };
    format!("{start}{} in bundle `{}`", counts.join(", "), view::text(report, "bundle"))
}
