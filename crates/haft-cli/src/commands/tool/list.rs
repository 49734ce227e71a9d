//! `haft tool list`: lists tools.

use clap::Args;
use haft_api::search::SearchResult;
use haft_api::tool::{ToolList, ToolView};
use haft_api::tool_summary::{ToolSummary, ToolSummaryList};
use serde_json::Value;

use super::filter::ToolFilter;
use crate::client::{Client, Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
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
    /// Deleted tools that `haft tool undelete` restores; of the filters only `--search` applies
    #[arg(long, conflicts_with_all = ["enabled", "bundle", "kind", "status", "tag"])]
    deleted: bool,
    /// Maximum number of tools; 0 for all
    #[arg(long, value_name = "N", default_value = "100")]
    limit: usize,
}

impl Arguments {
    fn request(&self, page_size: usize) -> Request {
        // A search ranks its results; a list is filtered and sorted by name.
        if self.deleted {
            return Request::get("/api/tools?deleted=true")
                .query("page_size", &page_size.to_string())
                .query_some("q", self.query.as_deref());
        }
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
    let tools = find(&arguments, &client).await;
    client.close().await;
    let data = tools?;
    if arguments.deleted {
        return context.output.show(&data, |output, ToolSummaryList { tools, .. }| {
            let row = |tool: &ToolSummary| {
                let (id, status) = (view::optional(tool.id.as_ref()), tool.status.as_str().to_owned());
                vec![tool.qualified(), id, status, view::moment(tool.deleted_at)]
            };
            output.list(&["TOOL", "ID", "STATUS", "DELETED"], &[], tools.iter().map(row).collect())
        });
    }
    context.output.data(&data, |output| {
        let (tools, total) = read(&arguments, &data)?;
        let header = ["TOOL", "TYPE", "STATUS", "READY", "CALLS", "DESCRIPTION"];
        let wide = ["ID", "REVISION", "CATEGORY", "TAGS", "CHANGED"];
        output.list(&header, &wide, tools.iter().map(|tool| row(tool, output)).collect())?;
        if total > tools.len() {
            output.note(&format!("\n{} of {total} tools; `--limit 0` shows all", tools.len()));
        }
        Ok(())
    })
}

/// Returns the tools of a list or of a search, and their number on all pages.
fn read(arguments: &Arguments, data: &Value) -> Result<(Vec<ToolView>, usize), CliError> {
    if arguments.query.is_some() {
        let SearchResult { tools, total, .. } = view::read(data)?;
        return Ok((tools.into_iter().map(|ranked| ranked.tool).collect(), total));
    }
    let ToolList { tools, total, .. } = view::read(data)?;
    Ok((tools, total))
}

/// Returns the tools; an unknown bundle is an error instead of an empty list.
async fn find(arguments: &Arguments, client: &Client) -> Result<Value, CliError> {
    let data = collect(arguments, client).await?;
    if let Some(bundle) = &arguments.filter.bundle
        && view::list(&data, "tools").is_empty()
    {
        client.data(Request::get(format!("/api/tools/bundles/{}", segment(bundle)))).await?;
    }
    Ok(data)
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

fn row(tool: &ToolView, output: &Output) -> Vec<String> {
    let ready = match (tool.ready, tool.warnings.len()) {
        (false, _) => "no".to_owned(),
        (true, 0) => "yes".to_owned(),
        (true, 1) => "yes, 1 warning".to_owned(),
        (true, count) => format!("yes, {count} warnings"),
    };
    vec![
        tool.qualified(),
        tool.implementation_type.map(|kind| kind.as_str().to_owned()).unwrap_or_default(),
        if tool.enabled { tool.status.as_str() } else { "disabled" }.to_owned(),
        ready,
        tool.usage.call_count.to_string(),
        output.brief(&tool.description, 60),
        view::optional(tool.id.as_ref()),
        tool.revision.to_string(),
        tool.category.clone(),
        tool.tags.join(", "),
        view::moment(tool.modified_at),
    ]
}
