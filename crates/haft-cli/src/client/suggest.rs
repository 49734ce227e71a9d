//! Adds the tool, and for an unknown one the most similar name, to an error.

use haft_api::search::SearchResult;
use haft_core::problem::nearest;
use serde_json::{Value, json};

use super::request::Request;
use super::transport::Client;
use crate::error::{CliError, is_missing_tool};
use crate::view;

/// Adds what helps to fix an error of a request about a tool.
pub(crate) async fn explain(error: CliError, tool: &str, client: &Client) -> CliError {
    let mut error = error.about_tool(tool);
    if let CliError::Api(api) = &mut error
        && is_missing_tool(api)
        && !api.message.contains("did you mean")
        && let Some(name) = similar_tool(tool, client).await
        && let Value::Object(details) = &mut api.details
    {
        details.insert("nearest".to_owned(), json!(name));
    }
    error
}

/// Returns the name that is most similar to an unknown one; the search of the server finds misspelled names.
async fn similar_tool(tool: &str, client: &Client) -> Option<String> {
    let (bundle, name) = tool.split_once(':').map_or((None, tool), |(bundle, name)| (Some(bundle), name));
    let name = name.split('@').next().unwrap_or(name);
    let found = client.data(Request::get("/api/tools/search").query("q", name)).await.ok()?;
    let SearchResult { tools, .. } = view::read(&found).ok()?;
    let names: Vec<String> = tools.into_iter().map(|found| found.tool.name).collect();
    let similar = nearest(name, names.iter().map(String::as_str))?;
    // The name may be right, and only the bundle or the version unknown.
    if similar == name && bundle.is_none() { None } else { Some(similar.to_owned()) }
}
