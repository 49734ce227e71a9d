//! Search results.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::tool::ToolView;

/// A page of matching tools, best match first.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct SearchResult {
    pub tools: Vec<RankedTool>,
    /// The number of tools on all pages: at most 1,000 by keywords, at most 100 by meaning.
    pub total: usize,
    #[serde(deserialize_with = "crate::read::nullable")]
    #[schema(required)]
    pub next_page_token: Option<String>,
}

/// A tool with its rank.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct RankedTool {
    #[serde(flatten)]
    pub tool: ToolView,
    /// The relevance; comparable only within one query.
    pub score: f32,
    /// The words of name, description, tags and parameter names that match the query, in lower case.
    pub matched_words: Vec<String>,
    /// The parts of name and description that match the query.
    pub highlights: Highlights,
}

/// Ranges `[start, end]` in characters.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct Highlights {
    #[schema(value_type = Vec<[usize; 2]>, example = json!([[0, 5]]))]
    pub name: Vec<(usize, usize)>,
    #[schema(value_type = Vec<[usize; 2]>, example = json!([[0, 5]]))]
    pub description: Vec<(usize, usize)>,
}
