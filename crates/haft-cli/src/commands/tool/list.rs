//! `haft tool list`: lists tools.

use clap::Args;
use serde_json::Value;

use super::filter::ToolFilter;
use crate::client::{Client, Request};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// The largest page of the API.
const MAX_PAGE_SIZE: usize = 500;

/// List tools
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Search text; lists the best matches first
    #[arg(short = 'q', long = "search", value_name = "TEXT")]
    query: Option<String>,
    #[command(flatten)]
    filter: ToolFilter,
    /// Only enabled tools
    #[arg(long)]
    enabled: bool,
    /// Maximum number of tools; 0 for all
    #[arg(long, value_name = "N", default_value = "100")]
    limit: usize,
}

impl Arguments {
    fn request(&self, page_size: usize) -> Request {
        // A search ranks its results; a list is filtered and sorted by name.
        let request = Request::get(if self.query.is_some() { "/api/tools/search" } else { "/api/tools" })
            .query("page_size", &page_size.to_string())
            .query("include_disabled", if self.enabled { "false" } else { "true" })
            .query_some("q", self.query.as_deref());
        self.filter.apply(request)
    }
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let client = context.client().await?;
    let tools = collect(&arguments, &client).await;
    client.close().await;
    let data = tools?;
    context.output.data(&data, |output| {
        let tools = view::list(&data, "tools");
        output.table(
            &["TOOL", "TYPE", "STATUS", "READY", "CALLS", "DESCRIPTION"],
            tools.iter().map(row).collect(),
        )?;
        let total = data.get("total").and_then(Value::as_u64).unwrap_or_default();
        if total > tools.len() as u64 {
            output.note(&format!("\n{} of {total} tools; `--limit 0` shows all", tools.len()));
        }
        Ok(())
    })
}

/// Reads pages until the limit is reached.
async fn collect(arguments: &Arguments, client: &Client) -> Result<Value, CliError> {
    let limit = if arguments.limit == 0 { usize::MAX } else { arguments.limit };
    let mut data = client.data(arguments.request(limit.min(MAX_PAGE_SIZE))).await?;
    loop {
        let have = view::list(&data, "tools").len();
        let next = data.get("next_page_token").and_then(Value::as_str).map(str::to_owned);
        let Some(token) = next.filter(|_| have < limit) else { return Ok(data) };
        let request = arguments.request((limit - have).min(MAX_PAGE_SIZE)).query("page_token", &token);
        let mut page = client.data(request).await?;
        let (Some(all), Some(Value::Array(more))) =
            (data.get_mut("tools").and_then(Value::as_array_mut), page.get_mut("tools").map(Value::take))
        else {
            return Ok(data);
        };
        if more.is_empty() {
            return Ok(data);
        }
        all.extend(more);
        if let Some(map) = data.as_object_mut() {
            let next = page.get_mut("next_page_token").map(Value::take).unwrap_or_default();
            map.insert("next_page_token".to_owned(), next);
        }
    }
}

fn row(tool: &Value) -> Vec<String> {
    let status = view::text(tool, "status");
    let ready = match (view::is(tool, "ready"), view::list(tool, "warnings").len()) {
        (false, _) => "no".to_owned(),
        (true, 0) => "yes".to_owned(),
        (true, 1) => "yes, 1 warning".to_owned(),
        (true, count) => format!("yes, {count} warnings"),
    };
    vec![
        view::qualified(tool),
        view::text(tool, "implementation_type"),
        if view::is(tool, "enabled") { status } else { "disabled".to_owned() },
        ready,
        view::text(tool, "usage.call_count"),
        view::first_line(&view::text(tool, "description"), 60),
    ]
}
