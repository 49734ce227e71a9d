//! `haft import registry`: creates tools from rows of a `tool_registry` table.

use std::path::{Path, PathBuf};

use clap::Args;
use haft_api::import::{RegistryReport, RowReport};
use http::Method;

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
    let data = context.request(request).await?;
    let report: RegistryReport = view::read(&data)?;
    context.output.data(&data, |output| {
        output.table(&["LINE", "TOOL", "STATUS", "ACTION", "NOTE"], report.rows.iter().map(row).collect())?;
        output.note(&summary(&report));
        Ok(())
    })?;
    let (failed, total) = (report.failed, report.rows.len());
    // Only a dry run reports invalid rows; otherwise the request fails.
    if failed > 0 {
        return Err(CliError::SomeFailed { failed, total, items: "rows are invalid" });
    }
    Ok(())
}

fn row(row: &RowReport) -> Vec<String> {
    let mut notes: Vec<String> = row.reason.iter().cloned().collect();
    if row.hidden {
        notes.push("hidden in lists: a copy of a built-in tool".to_owned());
    }
    notes.extend(row.warnings.iter().map(view::problem));
    vec![
        row.line.to_string(),
        row.tool.clone().unwrap_or_default(),
        row.status.map(|status| status.as_str().to_owned()).unwrap_or_default(),
        view::word(&row.action),
        notes.join("; "),
    ]
}

fn summary(report: &RegistryReport) -> String {
    let RegistryReport { bundle, dry_run, created, updated, unchanged, skipped, failed, .. } = report;
    let counted = [
        (created, "created"),
        (updated, "updated"),
        (unchanged, "unchanged"),
        (skipped, "skipped"),
        (failed, "failed"),
    ];
    let counts = counted.iter().filter(|(count, _)| **count > 0);
    let counts: Vec<String> = counts.map(|(count, word)| format!("{count} {word}")).collect();
    let start = if *dry_run { "dry run: " } else { "" };
    format!("{start}{} in bundle `{bundle}`", counts.join(", "))
}
