//! `GET /tools/search`: one or two keywords by prefix, word, similar word and recency; sentences by meaning.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use haft_core::implementation::Kind;
use haft_core::tool::{Status, ToolType};
use haft_runtime::registry::Entry;
use haft_search::highlight;
use serde::Serialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::error::ApiError;
use crate::identity::Identity;
use crate::params::{PageParams, Params};
use crate::reply::{Success, success};
use crate::search::{Found, Ranking};
use crate::view::ToolView;

/// The most tools that one query ranks.
const MAX_HITS: usize = 1000;
/// The longest query, in characters.
pub(crate) const MAX_QUERY: usize = haft_search::MAX_QUERY;

/// A page of matching tools, best match first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchResult {
    tools: Vec<RankedTool>,
    total: usize,
    #[schema(required)]
    next_page_token: Option<String>,
}

/// A tool with its rank.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RankedTool {
    #[serde(flatten)]
    tool: ToolView,
    /// How well the tool fits; comparable within one query only.
    score: f32,
    /// The parts of name and description that match the query.
    highlights: Highlights,
}

/// Ranges `[start, end]` in characters.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Highlights {
    name: Vec<(usize, usize)>,
    description: Vec<(usize, usize)>,
}

/// Search tools.
#[utoipa::path(
    get, path = "/tools/search", tag = "tools",
    params(
        ("q" = String, Query, description = "Keywords or a sentence, at most 4,000 characters",
            min_length = 1, max_length = 4000, example = "greet"),
        ("filter" = Option<String>, Query, description = "`all`, `built-in` (or `builtin`), `skills` (or `user`), or `plugins`",
            pattern = "^(all|built-in|builtin|skills|user|plugins)$"),
        ("runtime" = Option<String>, Query, description = "`bash`, `python` or `wasm`", pattern = "^(bash|python|wasm)$"),
        ("status" = Option<Status>, Query, description = "The life cycle status"),
        ("implementation_type" = Option<Kind>, Query, description = "The kind of implementation"),
        ("tool_type" = Option<ToolType>, Query, description = "The category of the tool"),
        ("tags" = Option<String>, Query, description = "Comma-separated; matches any of them"),
        ("bundle_ids" = Option<String>, Query, description = "Comma-separated ids or slugs"),
        ("include_disabled" = Option<bool>, Query, description = "Also tools that cannot be called"),
        PageParams,
    ),
    responses((status = 200, body = Success<SearchResult>))
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
    let found = app.search().search(&identity.tenant, (query, Ranking::Keywords), MAX_HITS, matches);
    let size = usize::try_from(page.size).unwrap_or(usize::MAX);
    let terms = app.search().query_terms(&identity.tenant, query);
    let mut prefixes: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
    if prefixes.len() > haft_search::MAX_KEYWORDS {
        // In a sentence only whole words match.
        prefixes.clear();
    }
    let ranked = |found: &Found| {
        let spec = &found.entry.tool.spec;
        let mark = |text: &str| highlight(text, &terms, &prefixes);
        let highlights = Highlights { name: mark(spec.name.as_str()), description: mark(&spec.description) };
        RankedTool { tool: ToolView::from(&*found.entry), score: found.score, highlights }
    };
    let tools: Vec<_> = found.iter().skip(start).take(size).map(ranked).collect();
    let end = start.saturating_add(tools.len());
    let next_page_token = (end < found.len()).then(|| page.token(&end.to_string()));
    Ok(success(SearchResult { total: found.len(), tools, next_page_token }).into_response())
}
