//! Several indexes that are searched as one.

use haft_core::id::ToolId;

use crate::highlight::Matcher;
use crate::index::{Hit, Index, Ranked};
use crate::keywords::keywords;
use crate::tokens::tokens;

/// The most characters of a query that count.
pub const MAX_QUERY: usize = 4000;
/// Queries of more words are sentences, not keywords.
const MAX_KEYWORDS: usize = 2;
/// The most tools that [`Union::search`] ranks by meaning: every tool fits somehow, and nobody reads further.
pub const MAX_RANKED: usize = 100;

/// Several indexes that are searched as if they were one, such as the tools of a tenant and those of all tenants. A
/// shared index is stored once, and the scores are those of one index of all tools.
#[derive(Debug, Clone)]
pub struct Union<'a>(Vec<&'a Index>);

impl<'a> Union<'a> {
    /// Creates the union of indexes.
    pub fn new(indexes: impl IntoIterator<Item = &'a Index>) -> Self {
        Self(indexes.into_iter().collect())
    }

    /// Returns the best tools for one or two keywords by tier (name prefix, whole word, start of a word, similar word),
    /// and within a tier by [`Union::rank`]; for anything longer, or if no keyword fits, the [`MAX_RANKED`] best by
    /// [`Union::rank`].
    pub fn search(&self, query: &str, limit: usize, accept: impl Fn(ToolId) -> bool) -> Vec<Hit> {
        let query = cut(query);
        if query.split_whitespace().count() <= MAX_KEYWORDS {
            let hits =
                self.best(limit, |index| index.search_keywords_among(&self.0, (query, limit), &accept));
            if !hits.is_empty() {
                return hits;
            }
        }
        self.rank(query, limit.min(MAX_RANKED), accept)
    }

    /// Returns the best tools for a query in plain language.
    pub fn rank(&self, query: &str, limit: usize, accept: impl Fn(ToolId) -> bool) -> Vec<Hit> {
        let query = cut(query);
        self.best(limit, |index| index.rank_among(&self.0, (query, limit), &accept))
    }

    /// Returns what marks the words of a tool that a query matches.
    pub fn matcher(&self, query: &str) -> Matcher {
        let query = cut(query);
        let tokens = tokens(query);
        let mut terms: Vec<String> = self.0.iter().flat_map(|index| index.matching_terms(&tokens)).collect();
        terms.sort_unstable();
        terms.dedup();
        let is_sentence = query.split_whitespace().count() > MAX_KEYWORDS;
        // In a sentence only whole words match.
        let prefixes = if is_sentence { Vec::new() } else { keywords(query) };
        Matcher { terms, prefixes }
    }

    /// Merges the best tools of each index.
    fn best(&self, limit: usize, of: impl Fn(&Index) -> Vec<Ranked>) -> Vec<Hit> {
        let mut ranked: Vec<Ranked> = self.0.iter().flat_map(|index| of(index)).collect();
        if self.0.len() > 1 {
            ranked.sort_unstable_by(|a, b| b.cmp(a));
            ranked.truncate(limit);
        }
        ranked.into_iter().map(Hit::from).collect()
    }
}

/// Cuts a query to the characters that count.
fn cut(query: &str) -> &str {
    let end = query.char_indices().nth(MAX_QUERY).map_or(query.len(), |(at, _)| at);
    query.get(..end).unwrap_or_default()
}
