//! `haft reindex`: builds the index anew from the definition files.

use serde_json::json;

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let report = match client.engine() {
        Some(engine) => engine.reindex().await,
        None => client.data(Request::post("/api/reindex", json!({}))).await,
    };
    client.close().await;
    let report = report?;
    context.output.data(&report, |output| output.line(&view::readable(&report)))
}
