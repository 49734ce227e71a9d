//! `haft limits`: shows the limits of the tenant and how much of them is used.

use serde_json::Value;

use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Runs the command.
pub(crate) async fn run(context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get("/api/limits")).await?;
    context.output.data(&data, |output| {
        let rows = view::list(&data, "limits").iter().map(row).collect();
        output.table(&["LIMIT", "OF", "VALUE", "USED", "RESETS IN"], rows)?;
        match data.get("omitted").and_then(Value::as_u64) {
            Some(omitted) if omitted > 0 => {
                output.note(&format!("{omitted} limits of tools and tokens are not shown"));
            }
            _ => {}
        }
        Ok(())
    })
}

fn row(limit: &Value) -> Vec<String> {
    let value = view::text(limit, "value");
    let per = view::text(limit, "per");
    let reset = view::text(limit, "reset_seconds");
    vec![
        view::text(limit, "name"),
        view::text(limit, "subject"),
        if per.is_empty() { value } else { format!("{value} per {per}") },
        view::text(limit, "used"),
        if reset.is_empty() { reset } else { format!("{reset}s") },
    ]
}
