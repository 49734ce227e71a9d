//! `GET /tools/search`: one or two keywords by prefix, word, similar word and recency; sentences by meaning.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::spec::ToolSpec;
use haft_runtime::registry::{Entry, Snapshot};
use haft_search::{MAX_QUERY, Matcher};

use super::tools::{self, ToolFilterParams};
use crate::authentication::Caller;
use crate::error::ApiError;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::view;
use haft_api::search::{Highlights, RankedTool, SearchResult};
use haft_platform::Installation;
use haft_platform::search::{RankedEntry, Ranking, SearchQuery};
use haft_platform::viewer::Viewer;

/// The most tools that one query finds by its keywords. Ranking by meaning ends earlier.
const MAX_HITS: usize = 1000;

/// Search tools.
#[utoipa::path(
    get, path = "/tools/search", tag = "tools",
    params(
        ("q" = String, Query, description = "Keywords or a sentence, at most 4,000 characters",
            min_length = 1, max_length = 4000, example = "greet"),
        ToolFilterParams,
        PageParams,
    ),
    responses((status = 200, body = Success<SearchResult>))
)]
pub(crate) async fn search(
    State(app): State<Arc<Installation>>,
    Caller(identity): Caller,
    params: Params,
) -> Result<Response, ApiError> {
    let text = params.get("q").ok_or_else(|| ApiError::bad_request("missing `q`: the search text"))?;
    if text.chars().count() > MAX_QUERY {
        return Err(ApiError::bad_request(format!("`q` exceeds the limit of {MAX_QUERY} characters")));
    }
    // `q` is ranked here, not looked for as a part of a text.
    let mut filter = tools::filter(&params)?;
    filter.text = None;
    let page = params.page("search")?;
    let start: usize = page.after()?.unwrap_or(0);
    let start = start.saturating_add(usize::try_from(page.skip).unwrap_or(usize::MAX));

    let mode = app.settings().mode;
    let viewer = Viewer::new(&app, &identity);
    let reader = viewer.clone();
    let accept = move |snapshot: &Snapshot, entry: &Entry| {
        filter.matches(snapshot, entry)
            && reader.lists(snapshot, entry, filter.include_disabled)
            && (filter.include_disabled || snapshot.is_runnable(entry, mode))
    };
    let query = SearchQuery {
        tenant: identity.tenant.clone(),
        text: text.to_owned(),
        ranking: Ranking::Keywords,
        limit: MAX_HITS,
        page: start..start.saturating_add(usize::try_from(page.size).unwrap_or(usize::MAX)),
    };
    let ranked = app.search().search(query, accept).await?;
    let snapshot = app.registry().snapshot();
    let tools: Vec<_> =
        ranked.tools.iter().map(|found| ranked_tool(found, &ranked.matcher, &viewer, &snapshot)).collect();
    let (total, end) = (ranked.total, start.saturating_add(tools.len()));
    let next_page_token = (end < total).then(|| page.token(&end.to_string()));
    Ok(success(SearchResult { tools, total, next_page_token }).into_response())
}

fn ranked_tool(found: &RankedEntry, matcher: &Matcher, viewer: &Viewer, snapshot: &Snapshot) -> RankedTool {
    let spec = &found.entry.tool.spec;
    let highlights = Highlights {
        name: matcher.ranges(spec.name.as_str()),
        description: matcher.ranges(&spec.description),
    };
    let parameters = spec.declared_arguments();
    let matched_words = matcher.words(searched_texts(spec).chain(parameters.iter().map(String::as_str)));
    let tool = view::tool(&found.entry, viewer, snapshot);
    RankedTool { tool, score: found.score, matched_words, highlights }
}

fn searched_texts(spec: &ToolSpec) -> impl Iterator<Item = &str> {
    [spec.name.as_str(), &spec.display_name, &spec.description]
        .into_iter()
        .chain(spec.tags.iter().map(String::as_str))
}
