//! `GET /tools/search`: ranked by prefix, whole word, fuzzy, recency.

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
/// The longest query.
pub(crate) const MAX_QUERY: usize = 200;

/// A page of found tools, best first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Found {
    tools: Vec<ToolView>,
    total: usize,
    next_page_token: Option<String>,
}

/// Find tools by words.
#[utoipa::path(
    get, path = "/tools/search", tag = "tools",
    params(("q" = String, Query), ("include_disabled" = Option<bool>, Query),
        ("page_size" = Option<u32>, Query), ("page_token" = Option<String>, Query)),
    responses((status = 200, body = Success<Found>), (status = 400, body = ErrorBody))
)]
pub(crate) async fn search(
    State(app): State<Arc<App>>,
    identity: Identity,
    params: Params,
) -> Result<Response, ApiError> {
    let query = params.get("q").ok_or_else(|| ApiError::bad_request("`q` is missing: what to search for"))?;
    if query.chars().count() > MAX_QUERY {
        return Err(ApiError::bad_request(format!("`q` is longer than {MAX_QUERY} characters")));
    }
    let include_disabled = params.flag("include_disabled")?;
    let page = params.page("search")?;
    let position = page.after.as_deref().map_or(Ok(0), str::parse);
    let start: usize = position.map_err(|_| haft_core::page::PageTokenError)?;
    let start = start.saturating_add(usize::try_from(page.skip).unwrap_or(usize::MAX));

    let snapshot = app.registry().snapshot();
    let wanted =
        |entry: &Entry| include_disabled || (entry.tool.enabled && snapshot.is_bundle_enabled(entry));
    let found = find(&app, &identity.tenant, query, wanted);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let tools: Vec<_> = found.iter().skip(start).take(size).map(|entry| ToolView::from(&**entry)).collect();
    let end = start.saturating_add(tools.len());
    let next_page_token = (end < found.len()).then(|| page.token(&end.to_string()));
    Ok(success(Found { total: found.len(), tools, next_page_token }).into_response())
}

/// Returns the tools of a tenant that fit the words, best first.
pub(crate) fn find(
    app: &App,
    tenant: &TenantId,
    query: &str,
    wanted: impl Fn(&Entry) -> bool,
) -> Vec<Arc<Entry>> {
    let snapshot = app.registry().snapshot();
    let counts = |id| snapshot.tool(tenant, id).is_some_and(|entry| wanted(entry));
    let hits = app.store().search().search(query, MAX_HITS, counts);
    hits.iter().filter_map(|hit| snapshot.tool(tenant, hit.id).cloned()).collect()
}
