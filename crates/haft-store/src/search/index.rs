//! The search index: a sorted vocabulary, the tools of each word, and the words of each tool.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use haft_core::Timestamp;
use haft_core::catalog::Change;
use haft_core::id::ToolId;
use haft_core::tool::Tool;

use super::words::{FuzzyMatcher, words};

/// Further words of a query are ignored.
const MAX_WORDS: usize = 16;
/// How many bytes of a description are indexed.
const MAX_DESCRIPTION_BYTES: usize = 4096;

/// A tool that matches a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchHit {
    /// The tool.
    pub id: ToolId,
    /// How well it matches; higher is better.
    pub score: u32,
}

/// Ranks tools by a query.
#[derive(Debug, Default)]
pub struct SearchIndex {
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    vocabulary: BTreeMap<Box<str>, Vec<(ToolId, Field)>>,
    entries: HashMap<ToolId, Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    title: String,
    words: Vec<Box<str>>,
    modified_at: Timestamp,
}

/// The field that contains a word, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Field {
    Name,
    Title,
    Tag,
    Description,
}

// The scores of a match. They are so far apart that no number of weaker matches outweighs a better one.
const PREFIX: u32 = 4000;
const WHOLE_WORD: u32 = 2000;
const WORD_START: u32 = 1000;
const FUZZY: u32 = 500;

impl SearchIndex {
    /// Applies changes.
    pub fn apply(&self, changes: &[Change]) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            match change {
                Change::Tool(tool) => tables.put(tool),
                Change::ToolGone(id) => tables.remove(*id),
                Change::Bundle(_)
                | Change::BundleGone(_)
                | Change::Unreadable(_)
                | Change::UnreadableGone(_) => {}
            }
        }
    }

    /// Replaces the index by that of a whole catalog.
    pub fn replace(&self, everything: &[Change]) {
        let fresh = SearchIndex::default();
        fresh.apply(everything);
        let fresh = fresh.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.tables.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    /// Returns the tools that match every word of the query, best first. `filter` decides which tools are visible to
    /// the caller.
    pub fn search(&self, query: &str, limit: usize, filter: impl Fn(ToolId) -> bool) -> Vec<SearchHit> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.search(query, limit, filter)
    }
}

impl Tables {
    fn put(&mut self, tool: &Tool) {
        self.remove(tool.id);
        let spec = &tool.spec;
        let mut fields: BTreeMap<String, Field> = BTreeMap::new();
        let mut add = |text: &str, field: Field| {
            for word in words(text) {
                let best = fields.entry(word).or_insert(field);
                *best = (*best).min(field);
            }
        };
        add(spec.name.as_str(), Field::Name);
        add(&spec.display_name, Field::Title);
        spec.tags.iter().for_each(|tag| add(tag, Field::Tag));
        add(&spec.category, Field::Tag);
        let end = spec.description.floor_char_boundary(MAX_DESCRIPTION_BYTES);
        add(spec.description.get(..end).unwrap_or_default(), Field::Description);
        let mut list = Vec::with_capacity(fields.len());
        for (word, field) in fields {
            let word: Box<str> = word.into();
            self.vocabulary.entry(word.clone()).or_default().push((tool.id, field));
            list.push(word);
        }
        let entry = Entry {
            name: spec.name.as_str().to_lowercase(),
            title: spec.display_name.to_lowercase(),
            words: list,
            modified_at: tool.modified_at,
        };
        self.entries.insert(tool.id, entry);
    }

    fn remove(&mut self, id: ToolId) {
        let Some(entry) = self.entries.remove(&id) else { return };
        for word in entry.words {
            if let Some(tools) = self.vocabulary.get_mut(&word) {
                tools.retain(|(other, _)| *other != id);
                if tools.is_empty() {
                    self.vocabulary.remove(&word);
                }
            }
        }
    }

    fn search(&self, query: &str, limit: usize, filter: impl Fn(ToolId) -> bool) -> Vec<SearchHit> {
        let mut total: Option<HashMap<ToolId, u32>> = None;
        for word in words(query).take(MAX_WORDS) {
            let matches = self.matches(&word);
            total = Some(match total {
                None => matches,
                Some(so_far) => so_far
                    .into_iter()
                    .filter_map(|(id, score)| matches.get(&id).map(|more| (id, score + more)))
                    .collect(),
            });
        }
        let whole = query.trim().to_lowercase();
        let mut hits: Vec<(SearchHit, &Entry)> = total
            .unwrap_or_default()
            .into_iter()
            .filter(|(id, _)| filter(*id))
            .filter_map(|(id, score)| {
                let entry = self.entries.get(&id)?;
                Some((SearchHit { id, score: score + whole_query_bonus(entry, &whole) }, entry))
            })
            .collect();
        let order = |(a, x): &(SearchHit, &Entry), (b, y): &(SearchHit, &Entry)| {
            let key = |hit: &SearchHit, entry: &Entry| (Reverse(hit.score), Reverse(entry.modified_at));
            key(a, x).cmp(&key(b, y)).then_with(|| x.name.cmp(&y.name)).then_with(|| a.id.cmp(&b.id))
        };
        // A common word matches thousands of tools, but only one page is returned.
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits.into_iter().map(|(hit, _)| hit).collect()
    }

    /// Returns the tools that match one word, each with its best score.
    fn matches(&self, word: &str) -> HashMap<ToolId, u32> {
        let mut scores: HashMap<ToolId, u32> = HashMap::new();
        let mut add = |tools: &[(ToolId, Field)], score: &dyn Fn(Field) -> u32| {
            for (id, field) in tools {
                let best = scores.entry(*id).or_default();
                *best = (*best).max(score(*field));
            }
        };
        let range = self.vocabulary.range::<str, _>((Bound::Included(word), Bound::Unbounded));
        for (candidate, tools) in range.take_while(|(candidate, _)| candidate.starts_with(word)) {
            let exact = candidate.len() == word.len();
            add(tools, &|field| prefix_score(field, exact));
        }
        if let Some(mut matcher) = FuzzyMatcher::new(word) {
            for (candidate, tools) in
                self.vocabulary.iter().filter(|(candidate, _)| matcher.matches(candidate))
            {
                // Words with this prefix were added above with a better score.
                if !candidate.starts_with(word) {
                    add(tools, &|field| FUZZY + field_bonus(field));
                }
            }
        }
        scores
    }
}

fn prefix_score(field: Field, exact: bool) -> u32 {
    let base = match (field, exact) {
        (Field::Name | Field::Title, _) => PREFIX,
        (Field::Tag | Field::Description, true) => WHOLE_WORD,
        (Field::Tag | Field::Description, false) => WORD_START,
    };
    base + field_bonus(field) + if exact { 50 } else { 0 }
}

const fn field_bonus(field: Field) -> u32 {
    match field {
        Field::Name => 30,
        Field::Title => 20,
        Field::Tag => 10,
        Field::Description => 0,
    }
}

/// Returns the bonus of a name that equals or starts with the whole query.
fn whole_query_bonus(entry: &Entry, query: &str) -> u32 {
    if entry.name == query || entry.title == query {
        400
    } else if entry.name.starts_with(query) || entry.title.starts_with(query) {
        200
    } else {
        0
    }
}
