//! `GET /tools/search`: ranked by prefix match, word match, fuzzy match and recency.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::name::TenantId;
use haft_runtime::registry::Entry;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::{ApiError, ErrorBody};
use crate::identity::Identity;
use crate::params::Params;
use crate::reply::{Success, success};
use crate::view::ToolView;

/// The most tools that one query ranks.
const MAX_HITS: usize = 1000;
/// The longest query, in characters.
pub(crate) const MAX_QUERY: usize = 200;

/// A page of matching tools, best match first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResult {
    tools: Vec<ToolView>,
    total: usize,
    next_page_token: Option<String>,
}

/// Search tools.
#[utoipa::path(
    get, path = "/tools/search", tag = "tools",
    params(("q" = String, Query), ("include_disabled" = Option<bool>, Query),
        ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query)),
    responses((status = 200, body = Success<SearchResult>), (status = 400, body = ErrorBody))
)]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let query = params.get("q").ok_or_else(|| ApiError::bad_request("missing `q`: the search text"))?;
    if query.chars().count() > MAX_QUERY {
        return Err(ApiError::bad_request(format!("`q` exceeds the limit of {MAX_QUERY} characters")));
    }
    let include_disabled = params.flag("include_disabled")?;
    let page = params.page("search")?;
    let start: usize = page.after()?.unwrap_or(0);
    let start = start.saturating_add(usize::try_from(page.skip).unwrap_or(usize::MAX));

    let snapshot = app.registry().snapshot();
    let matches =
        |entry: &Entry| include_disabled || (entry.tool.enabled && snapshot.is_bundle_enabled(entry));
    let found = find(&app, &identity.tenant, query, matches);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let tools: Vec<_> = found.iter().skip(start).take(size).map(|entry| ToolView::from(&**entry)).collect();
    let end = start.saturating_add(tools.len());
    let next_page_token = (end < found.len()).then(|| page.token(&end.to_string()));
    Ok(success(SearchResult { total: found.len(), tools, next_page_token }).into_response())
}

/// Returns the matching tools of a tenant, best match first.
pub(crate) fn find(
    app: &App,
    tenant: &TenantId,
    query: &str,
    matches: impl Fn(&Entry) -> bool,
) -> Vec<Arc<Entry>> {
    let snapshot = app.registry().snapshot();
    let filter = |id| snapshot.tool(tenant, id).is_some_and(|entry| matches(entry));
    let hits = app.store().search().search(query, MAX_HITS, filter);
    hits.iter().filter_map(|hit| snapshot.tool(tenant, hit.id).cloned()).collect()
}
