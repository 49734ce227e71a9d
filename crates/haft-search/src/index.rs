//! The index of one catalogue.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};

use haft_core::Timestamp;
use haft_core::id::ToolId;

use crate::document::{Document, PreparedDocument};
use crate::embedding::{DIMENSIONS, SHORT, Vector, dot, model};
use crate::keywords::{Names, WHOLE_QUERY, keywords, tiers, whole_query};
use crate::lexicon::Lexicon;
use crate::tokens::{is_camel_case, letters_and_digits, tokens};
use crate::union::Union;

/// The weight of the lexical score next to the cosine.
const LEXICAL_WEIGHT: f32 = 0.03;
/// Short queries rest more on their words.
const FEW_TOKENS: f32 = 6.0;
/// The query is the name of a tool.
const EXACT_NAME: f32 = 10.0;
/// The query contains the name of a tool as an identifier.
const NAME_IN_QUERY: f32 = 1.0;
/// Shorter identifiers in a query are ordinary words.
const MIN_IDENTIFIER: usize = 5;
/// Larger catalogues compare only the first part of the vectors.
const SHORT_VECTORS_ABOVE: usize = 20_000;
/// Differences of the ranker below this do not outweigh recency among equal keyword fits.
const RANK_STEP: f32 = 0.2;

/// A tool that fits a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// The tool.
    pub id: ToolId,
    /// How well it fits; higher is better. Comparable within one query only.
    pub score: f32,
}

/// The tools of one catalogue, ranked for queries.
#[derive(Debug, Default)]
pub struct Index {
    slots: HashMap<ToolId, u32>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    lexicon: Lexicon,
    names: Names,
    /// The slots of a name, spelled in letters and digits only.
    spelled: HashMap<String, Vec<u32>>,
    vectors: Vectors,
}

#[derive(Debug)]
struct Entry {
    id: ToolId,
    name: String,
    title: String,
    modified_at: Timestamp,
}

/// The vectors of all slots; the first and second part of each apart, so that a scan of the first part reads no more.
#[derive(Debug, Default)]
struct Vectors {
    first: Vec<i8>,
    second: Vec<i8>,
    scales: Vec<(f32, f32)>,
}

impl Index {
    /// Returns the number of tools.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Tells whether there are no tools.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Adds a tool or replaces it.
    pub fn put(&mut self, id: ToolId, document: &Document, modified_at: Timestamp) {
        self.put_prepared(id, PreparedDocument::from(document), modified_at);
    }

    /// Adds a tool or replaces it; as [`Index::put`], with most of the work done before.
    pub fn put_prepared(&mut self, id: ToolId, document: PreparedDocument, modified_at: Timestamp) {
        self.remove(id);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let PreparedDocument { name, title, tokens, vector } = document;
        self.lexicon.put(slot, tokens);
        self.names.put(slot, &name, &title);
        self.spelled.entry(letters_and_digits(&name)).or_default().push(slot);
        if let Some(vector) = vector {
            self.vectors.put(slot, &vector);
        }
        self.slots.insert(id, slot);
        let entry = Entry { id, name: name.to_lowercase(), title: title.to_lowercase(), modified_at };
        if let Some(place) = usize::try_from(slot).ok().and_then(|slot| self.entries.get_mut(slot)) {
            *place = Some(entry);
        }
    }

    /// Removes a tool.
    pub fn remove(&mut self, id: ToolId) {
        let Some(slot) = self.slots.remove(&id) else { return };
        let entry =
            usize::try_from(slot).ok().and_then(|slot| self.entries.get_mut(slot)).and_then(Option::take);
        let Some(entry) = entry else { return };
        self.lexicon.remove(slot);
        self.names.remove(slot, &entry.name, &entry.title);
        let spelled = letters_and_digits(&entry.name);
        if let Some(slots) = self.spelled.get_mut(&spelled) {
            slots.retain(|other| *other != slot);
            if slots.is_empty() {
                self.spelled.remove(&spelled);
            }
        }
        self.free.push(slot);
    }

    /// Returns the best tools for a query, as [`Union::search`] does.
    pub fn search(&self, query: &str, limit: usize, accept: impl Fn(ToolId) -> bool) -> Vec<Hit> {
        Union::new([self]).search(query, limit, accept)
    }

    /// Returns the best tools for a query in plain language.
    pub fn rank(&self, query: &str, limit: usize, accept: impl Fn(ToolId) -> bool) -> Vec<Hit> {
        Union::new([self]).rank(query, limit, accept)
    }

    /// Returns the best tools by meaning, next to those of `all` indexes that are searched together.
    pub(crate) fn rank_among(
        &self,
        all: &[&Index],
        (query, limit): (&str, usize),
        accept: impl Fn(ToolId) -> bool,
    ) -> Vec<Ranked> {
        let scores = self.scores(query, all, None);
        let score = |slot: usize| scores.get(slot).copied().unwrap_or_default();
        self.best(limit, accept, score, |slot, entry| Ranked {
            score: score(slot),
            tie: 0.0,
            modified_at: entry.modified_at,
            id: entry.id,
        })
    }

    /// Returns the best tools by keywords, next to those of `all` indexes that are searched together.
    pub(crate) fn search_keywords_among(
        &self,
        all: &[&Index],
        (query, limit): (&str, usize),
        accept: impl Fn(ToolId) -> bool,
    ) -> Vec<Ranked> {
        let keywords = keywords(query);
        if keywords.is_empty() {
            return Vec::new();
        }
        let tiers = tiers(&self.names, &self.lexicon, &keywords, self.entries.len());
        let scores = self.scores(query, all, Some(&tiers));
        let whole = query.trim().to_lowercase();
        let tier = |slot: usize| tiers.get(slot).copied().unwrap_or_default();
        let score = |tier: u32| f32::from(u16::try_from(tier).unwrap_or(u16::MAX));
        let highest = |slot: usize| match tier(slot) {
            0 => 0.0,
            tier => score(tier + WHOLE_QUERY),
        };
        self.best(limit, accept, highest, |slot, entry| Ranked {
            score: score(tier(slot) + whole_query(&entry.name, &entry.title, &whole)),
            tie: (scores.get(slot).copied().unwrap_or_default() / RANK_STEP).round(),
            modified_at: entry.modified_at,
            id: entry.id,
        })
    }

    /// Returns the terms that the words of a query match.
    pub(crate) fn matching_terms(&self, tokens: &[String]) -> Vec<String> {
        tokens.iter().flat_map(|token| self.lexicon.matching_terms(token)).map(str::to_owned).collect()
    }

    /// Returns the best accepted entries by `key`, best first. The score of a slot is at most `highest`; where that is 0
    /// the slot does not fit.
    ///
    /// `accept` is expensive and rejects few tools. So it is called for the best entries only, and only if too many of
    /// them are rejected for every entry that could be among them.
    fn best(
        &self,
        limit: usize,
        accept: impl Fn(ToolId) -> bool,
        highest: impl Fn(usize) -> f32,
        key: impl Fn(usize, &Entry) -> Ranked,
    ) -> Vec<Ranked> {
        let with_spare = limit.saturating_add(limit / 4 + 1);
        let mut hits = self.top(with_spare, |_| true, &highest, &key);
        let is_complete = hits.len() < with_spare;
        hits.retain(|hit| accept(hit.id));
        if is_complete || hits.len() >= limit {
            hits.truncate(limit);
            return hits;
        }
        self.top(limit, accept, highest, key)
    }

    /// Returns the best accepted entries, as [`Index::best`] does. Most slots are worse than the worst hit so far, and
    /// their entries are not read.
    fn top(
        &self,
        limit: usize,
        accept: impl Fn(ToolId) -> bool,
        highest: impl Fn(usize) -> f32,
        key: impl Fn(usize, &Entry) -> Ranked,
    ) -> Vec<Ranked> {
        let mut heap: BinaryHeap<Reverse<Ranked>> = BinaryHeap::new();
        let mut floor = 0.0;
        for (slot, entry) in self.entries.iter().enumerate() {
            let highest = highest(slot);
            if highest <= 0.0 || highest < floor {
                continue;
            }
            let Some(ranked) = entry.as_ref().map(|entry| key(slot, entry)) else { continue };
            let full = heap.len() >= limit;
            if (full && heap.peek().is_none_or(|Reverse(worst)| ranked <= *worst)) || !accept(ranked.id) {
                continue;
            }
            if full {
                heap.pop();
            }
            heap.push(Reverse(ranked));
            if heap.len() >= limit {
                floor = heap.peek().map_or(0.0, |Reverse(worst)| worst.score);
            }
        }
        heap.into_sorted_vec().into_iter().map(|Reverse(ranked)| ranked).collect()
    }

    /// Returns the score of every slot, without the embedding where `tiers` are given and that of the slot is 0.
    fn scores(&self, query: &str, all: &[&Index], tiers: Option<&[u32]>) -> Vec<f32> {
        let mut scores = vec![0.0_f32; self.entries.len()];
        let mut tokens = tokens(query);
        let lexicons: Vec<&Lexicon> = all.iter().map(|index| &index.lexicon).collect();
        self.lexicon.score(&tokens, &lexicons, &mut scores);
        tokens.sort_unstable();
        tokens.dedup();
        let distinct = f32::from(u16::try_from(tokens.len()).unwrap_or(u16::MAX)).max(1.0);
        let weight = LEXICAL_WEIGHT * (FEW_TOKENS / distinct).max(1.0);
        for score in &mut scores {
            *score *= weight;
        }
        if let Some(model) = model() {
            let is_large = all.iter().map(|index| index.len()).sum::<usize>() > SHORT_VECTORS_ABOVE;
            let width = if is_large { Width::Short } else { Width::Full };
            self.vectors.add_cosines(&model.query(query), width, tiers, &mut scores);
        }
        self.add_names(query, &mut scores);
        scores
    }

    fn add_names(&self, query: &str, scores: &mut [f32]) {
        let mut add = |spelled: &str, bonus: f32| {
            for slot in self.spelled.get(spelled).into_iter().flatten() {
                if let Some(score) = usize::try_from(*slot).ok().and_then(|slot| scores.get_mut(slot)) {
                    *score += bonus;
                }
            }
        };
        let whole = letters_and_digits(query);
        if !whole.is_empty() {
            add(&whole, EXACT_NAME);
        }
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        let mut seen = std::collections::HashSet::new();
        for chunk in query.split(|c| !is_part(c)) {
            let chunk = chunk.trim_matches(['.', ':', '-', '/']);
            let compound = chunk.contains(['_', '-', '.', '/', ':']) || is_camel_case(chunk);
            let spelled = letters_and_digits(chunk);
            if compound && spelled.chars().count() >= MIN_IDENTIFIER && seen.insert(chunk) {
                add(&spelled, NAME_IN_QUERY);
            }
        }
    }
}

/// How much of the vectors is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Full,
    Short,
}

impl Vectors {
    fn put(&mut self, slot: u32, vector: &Vector) {
        let slot = usize::try_from(slot).unwrap_or(usize::MAX);
        if self.scales.len() <= slot {
            self.first.resize((slot + 1) * SHORT, 0);
            self.second.resize((slot + 1) * (DIMENSIONS - SHORT), 0);
            self.scales.resize(slot + 1, (0.0, 0.0));
        }
        let (first, second) = vector.values.split_at(SHORT);
        let row = |width: usize| slot * width..(slot + 1) * width;
        if let Some(row) = self.first.get_mut(row(SHORT)) {
            row.copy_from_slice(first);
        }
        if let Some(row) = self.second.get_mut(row(DIMENSIONS - SHORT)) {
            row.copy_from_slice(second);
        }
        if let Some(scales) = self.scales.get_mut(slot) {
            *scales = (vector.scale, vector.short_scale);
        }
    }

    /// Adds to every score the largest cosine with one of the vectors; only where the tier is not 0 if there are tiers.
    #[expect(clippy::cast_precision_loss, reason = "a sum of int8 products is far below 2^24")]
    fn add_cosines(&self, queries: &[Vector], width: Width, tiers: Option<&[u32]>, scores: &mut [f32]) {
        let short = width == Width::Short;
        let queries: Vec<(Vec<i16>, f32)> = queries
            .iter()
            .map(|query| {
                let values = query.values.iter().map(|value| i16::from(*value)).collect();
                (values, if short { query.short_scale } else { query.scale })
            })
            .collect();
        let (first, _) = self.first.as_chunks::<SHORT>();
        let (second, _) = self.second.as_chunks::<{ DIMENSIONS - SHORT }>();
        let rows = scores.iter_mut().zip(first).zip(second).zip(&self.scales).enumerate();
        for (slot, (((score, first), second), (scale, short_scale))) in rows {
            if tiers.is_some_and(|tiers| tiers.get(slot).is_none_or(|tier| *tier == 0)) {
                continue;
            }
            let cosine = |(values, query_scale): &(Vec<i16>, f32)| {
                let (head, tail) = values.split_at(SHORT.min(values.len()));
                let product = dot(first, head);
                if short {
                    product as f32 * query_scale * short_scale
                } else {
                    (product + dot(second, tail)) as f32 * query_scale * scale
                }
            };
            *score += queries.iter().map(cosine).fold(f32::MIN, f32::max);
        }
    }
}

/// The order of hits: by score, then among equal ones by the tie breaker, then the most recent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    score: f32,
    tie: f32,
    modified_at: Timestamp,
    id: ToolId,
}

impl From<Ranked> for Hit {
    fn from(ranked: Ranked) -> Self {
        Self { id: ranked.id, score: ranked.score }
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then_with(|| self.tie.total_cmp(&other.tie))
            .then_with(|| self.modified_at.cmp(&other.modified_at))
            .then_with(|| other.id.cmp(&self.id))
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
