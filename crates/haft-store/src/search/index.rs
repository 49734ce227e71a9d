//! The index: a sorted vocabulary, the tools of each word, and the words of each tool.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::{PoisonError, RwLock};

use haft_core::Timestamp;
use haft_core::catalog::Change;
use haft_core::id::ToolId;
use haft_core::tool::Tool;

use super::words::{Near, words};

/// More words of a query say nothing.
const MAX_WORDS: usize = 16;
/// Only so much of a description is indexed.
const MAX_TEXT: usize = 4096;

/// A tool that fits a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchHit {
    /// The tool.
    pub id: ToolId,
    /// How well it fits; higher is better.
    pub score: u32,
}

/// Ranks tools by a query.
#[derive(Debug, Default)]
pub struct SearchIndex {
    tables: RwLock<Tables>,
}

#[derive(Debug, Default)]
struct Tables {
    vocabulary: BTreeMap<Box<str>, Vec<(ToolId, Place)>>,
    entries: HashMap<ToolId, Entry>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    title: String,
    words: Vec<Box<str>>,
    modified_at: Timestamp,
}

/// Where a word stands, the best place first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Name,
    Title,
    Tag,
    Description,
}

/// How a word fits. The steps are so far apart that no number of lesser fits outweighs a better one.
const PREFIX: u32 = 4000;
const WHOLE_WORD: u32 = 2000;
const WORD_START: u32 = 1000;
const FUZZY: u32 = 500;

impl SearchIndex {
    /// Takes changes.
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

    /// Forgets everything and takes the whole catalog.
    pub fn replace(&self, everything: &[Change]) {
        let fresh = SearchIndex::default();
        fresh.apply(everything);
        let fresh = fresh.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        *self.tables.write().unwrap_or_else(PoisonError::into_inner) = fresh;
    }

    /// Returns the tools that fit every word of the query, best first. `keep` decides which tools count:
    /// the caller knows who asks and what is enabled.
    pub fn search(&self, query: &str, limit: usize, keep: impl Fn(ToolId) -> bool) -> Vec<SearchHit> {
        let tables = self.tables.read().unwrap_or_else(PoisonError::into_inner);
        tables.search(query, limit, keep)
    }
}

impl Tables {
    fn put(&mut self, tool: &Tool) {
        self.remove(tool.id);
        let spec = &tool.spec;
        let mut places: BTreeMap<String, Place> = BTreeMap::new();
        let mut add = |text: &str, place: Place| {
            for word in words(text) {
                let best = places.entry(word).or_insert(place);
                *best = (*best).min(place);
            }
        };
        add(spec.name.as_str(), Place::Name);
        add(&spec.display_name, Place::Title);
        spec.tags.iter().for_each(|tag| add(tag, Place::Tag));
        add(&spec.category, Place::Tag);
        let end = spec.description.floor_char_boundary(MAX_TEXT);
        add(spec.description.get(..end).unwrap_or_default(), Place::Description);
        let mut list = Vec::with_capacity(places.len());
        for (word, place) in places {
            let word: Box<str> = word.into();
            self.vocabulary.entry(word.clone()).or_default().push((tool.id, place));
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

    fn search(&self, query: &str, limit: usize, keep: impl Fn(ToolId) -> bool) -> Vec<SearchHit> {
        let mut total: Option<HashMap<ToolId, u32>> = None;
        for word in words(query).take(MAX_WORDS) {
            let found = self.fits(&word);
            total = Some(match total {
                None => found,
                Some(so_far) => so_far
                    .into_iter()
                    .filter_map(|(id, score)| found.get(&id).map(|more| (id, score + more)))
                    .collect(),
            });
        }
        let whole = query.trim().to_lowercase();
        let mut hits: Vec<(SearchHit, &Entry)> = total
            .unwrap_or_default()
            .into_iter()
            .filter(|(id, _)| keep(*id))
            .filter_map(|(id, score)| {
                let entry = self.entries.get(&id)?;
                Some((SearchHit { id, score: score + whole_query(entry, &whole) }, entry))
            })
            .collect();
        let order = |(a, x): &(SearchHit, &Entry), (b, y): &(SearchHit, &Entry)| {
            let key = |hit: &SearchHit, entry: &Entry| (Reverse(hit.score), Reverse(entry.modified_at));
            key(a, x).cmp(&key(b, y)).then_with(|| x.name.cmp(&y.name)).then_with(|| a.id.cmp(&b.id))
        };
        // A common word fits thousands of tools, and only a page of them is wanted.
        if limit < hits.len() {
            hits.select_nth_unstable_by(limit, order);
            hits.truncate(limit);
        }
        hits.sort_unstable_by(order);
        hits.into_iter().map(|(hit, _)| hit).collect()
    }

    /// Returns the tools that one word fits, each with its best fit.
    fn fits(&self, word: &str) -> HashMap<ToolId, u32> {
        let mut scores: HashMap<ToolId, u32> = HashMap::new();
        let mut add = |tools: &[(ToolId, Place)], score: &dyn Fn(Place) -> u32| {
            for (id, place) in tools {
                let best = scores.entry(*id).or_default();
                *best = (*best).max(score(*place));
            }
        };
        let range = self.vocabulary.range::<str, _>((Bound::Included(word), Bound::Unbounded));
        for (candidate, tools) in range.take_while(|(candidate, _)| candidate.starts_with(word)) {
            let exact = candidate.len() == word.len();
            add(tools, &|place| fit(place, exact));
        }
        if let Some(mut near) = Near::new(word) {
            for (candidate, tools) in self.vocabulary.iter().filter(|(candidate, _)| near.fits(candidate)) {
                // What starts with the word was found above, with a better fit.
                if !candidate.starts_with(word) {
                    add(tools, &|place| FUZZY + nearness(place));
                }
            }
        }
        scores
    }
}

fn fit(place: Place, exact: bool) -> u32 {
    let base = match (place, exact) {
        (Place::Name | Place::Title, _) => PREFIX,
        (Place::Tag | Place::Description, true) => WHOLE_WORD,
        (Place::Tag | Place::Description, false) => WORD_START,
    };
    base + nearness(place) + if exact { 50 } else { 0 }
}

const fn nearness(place: Place) -> u32 {
    match place {
        Place::Name => 30,
        Place::Title => 20,
        Place::Tag => 10,
        Place::Description => 0,
    }
}

/// Rewards a name that is, or begins with, the query as a whole.
fn whole_query(entry: &Entry, query: &str) -> u32 {
    if entry.name == query || entry.title == query {
        400
    } else if entry.name.starts_with(query) || entry.title.starts_with(query) {
        200
    } else {
        0
    }
}
