//! BM25F over words and pairs of words, kept up to date one document at a time.
//!
//! Postings hold raw counts; lengths, averages and document frequencies are applied when a query runs, so that adding a
//! document never touches others.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

use crate::document::FIELDS;
use crate::fuzzy;

const WEIGHTS: [f32; FIELDS] = [2.0, 1.0, 0.5, 0.5, 0.5];
const LENGTH_NORM: [f32; FIELDS] = [0.75, 0.4, 0.75, 0.75, 0.75];
const K1: f32 = 1.5;
const K3: f32 = 0.5;
/// What a pair of words counts in comparison with a word.
const PAIR_WEIGHT: f32 = 0.3;

/// The most terms of a field that are indexed; their number is kept in 16 bits.
const MAX_TERMS: usize = 65_535;

type Map<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// How often a term occurs in the fields of one document. All counts are zero after the document was removed.
#[derive(Debug, Clone, Copy)]
struct Posting {
    slot: u32,
    counts: [u8; FIELDS],
}

/// The documents of one term, by slot.
#[derive(Debug, Default)]
struct Postings {
    list: Vec<Posting>,
    removed: usize,
}

/// The terms of all fields of a document, one field after the other, for its removal.
type Terms = Box<[u32]>;

/// Documents by the words they contain.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    /// In order, for search by prefix.
    ids: BTreeMap<Box<str>, u32>,
    terms: Vec<(Box<str>, Postings)>,
    pairs: Map<u64, Postings>,
    trigrams: Map<[char; 3], Vec<u32>>,
    documents_terms: Vec<Terms>,
    /// The lengths of the fields of each document, apart because every query reads them.
    lengths: Vec<[u16; FIELDS]>,
    documents: usize,
    total_lengths: [u64; FIELDS],
    total_pairs: [u64; FIELDS],
    /// The numbers of terms that no document has any more, for new terms.
    free: Vec<u32>,
}

impl Postings {
    fn live(&self) -> usize {
        self.list.len() - self.removed
    }

    fn put(&mut self, slot: u32, counts: [u8; FIELDS]) {
        match self.list.binary_search_by_key(&slot, |posting| posting.slot) {
            Ok(at) => {
                if let Some(posting) = self.list.get_mut(at) {
                    posting.counts = counts;
                    self.removed = self.removed.saturating_sub(1);
                }
            }
            Err(at) => {
                // Most lists stay short, so a list that doubles would waste much of the memory of an index.
                if self.list.len() == self.list.capacity() {
                    self.list.reserve_exact(1 + self.list.len() / 4);
                }
                self.list.insert(at, Posting { slot, counts });
            }
        }
    }

    fn remove(&mut self, slot: u32) {
        let found = self.list.binary_search_by_key(&slot, |posting| posting.slot);
        let Some(posting) = found.ok().and_then(|at| self.list.get_mut(at)) else { return };
        posting.counts = [0; FIELDS];
        self.removed += 1;
        if self.removed > 8 && self.removed * 2 > self.list.len() {
            self.list.retain(|posting| posting.counts != [0; FIELDS]);
            self.removed = 0;
        }
    }
}

impl Lexicon {
    /// Adds a document to a free slot.
    pub(crate) fn put(&mut self, slot: u32, fields: [Vec<String>; FIELDS]) {
        let (mut terms, mut lengths) = (Vec::new(), [0_u16; FIELDS]);
        let mut counts: Map<u32, [u8; FIELDS]> = Map::default();
        let mut pair_counts: Map<u64, [u8; FIELDS]> = Map::default();
        for (field, tokens) in fields.into_iter().enumerate() {
            let ids: Vec<u32> = tokens.into_iter().take(MAX_TERMS).map(|token| self.id(token)).collect();
            for id in &ids {
                increment(counts.entry(*id).or_default(), field);
            }
            for (left, right) in ids.iter().zip(ids.iter().skip(1)) {
                increment(pair_counts.entry(pair(*left, *right)).or_default(), field);
            }
            if let (Some(length), Some(total), Some(pairs)) =
                (lengths.get_mut(field), self.total_lengths.get_mut(field), self.total_pairs.get_mut(field))
            {
                *length = u16::try_from(ids.len()).unwrap_or(u16::MAX);
                *total += u64::from(*length);
                *pairs += u64::from(length.saturating_sub(1));
            }
            terms.extend(ids);
        }
        for (id, counts) in counts {
            if let Some((_, postings)) = usize::try_from(id).ok().and_then(|id| self.terms.get_mut(id)) {
                postings.put(slot, counts);
            }
        }
        for (key, counts) in pair_counts {
            self.pairs.entry(key).or_default().put(slot, counts);
        }
        let index = usize::try_from(slot).unwrap_or(usize::MAX);
        if index >= self.documents_terms.len() {
            self.documents_terms.resize_with(index + 1, Terms::default);
            self.lengths.resize(index + 1, [0; FIELDS]);
        }
        if let (Some(place), Some(own)) = (self.documents_terms.get_mut(index), self.lengths.get_mut(index)) {
            *place = terms.into();
            *own = lengths;
        }
        self.documents += 1;
    }

    /// Removes the document of a slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        let index = usize::try_from(slot).unwrap_or(usize::MAX);
        let Some(terms) = self.documents_terms.get_mut(index).map(std::mem::take) else { return };
        let lengths = self.lengths.get_mut(index).map(std::mem::take).unwrap_or_default();
        for key in &distinct_pairs(&terms, &lengths) {
            if let Some(postings) = self.pairs.get_mut(key) {
                postings.remove(slot);
                if postings.live() == 0 {
                    self.pairs.remove(key);
                }
            }
        }
        let mut distinct = terms.into_vec();
        distinct.sort_unstable();
        distinct.dedup();
        for id in &distinct {
            let place = usize::try_from(*id).ok().and_then(|id| self.terms.get_mut(id));
            let Some((_, postings)) = place else { continue };
            postings.remove(slot);
            if postings.live() == 0 {
                self.forget(*id);
            }
        }
        for (field, length) in lengths.iter().enumerate() {
            if let (Some(total), Some(pairs)) =
                (self.total_lengths.get_mut(field), self.total_pairs.get_mut(field))
            {
                *total -= u64::from(*length);
                *pairs -= u64::from(length.saturating_sub(1));
            }
        }
        self.documents -= 1;
    }

    /// Drops a term that no document has any more, so that memory does not grow with the number of changes.
    fn forget(&mut self, id: u32) {
        let place = usize::try_from(id).ok().and_then(|index| self.terms.get_mut(index));
        let Some((term, _)) = place.map(std::mem::take) else { return };
        self.ids.remove(&term);
        for trigram in indexed_trigrams(&term) {
            let Some(list) = self.trigrams.get_mut(&trigram) else { continue };
            if let Some(at) = list.iter().position(|other| *other == id) {
                list.swap_remove(at);
            }
            if list.is_empty() {
                self.trigrams.remove(&trigram);
            }
        }
        self.free.push(id);
    }

    /// Returns the number of the term, which is created if it is new.
    fn id(&mut self, term: String) -> u32 {
        if let Some(id) = self.ids.get(term.as_str()) {
            return *id;
        }
        let id = self.free.pop().unwrap_or_else(|| {
            self.terms.push(Default::default());
            u32::try_from(self.terms.len() - 1).unwrap_or(u32::MAX)
        });
        for trigram in indexed_trigrams(&term) {
            self.trigrams.entry(trigram).or_default().push(id);
        }
        let term: Box<str> = term.into();
        self.ids.insert(term.clone(), id);
        if let Some(place) = usize::try_from(id).ok().and_then(|index| self.terms.get_mut(index)) {
            place.0 = term;
        }
        id
    }

    fn find(&self, term: &str) -> Option<u32> {
        self.ids.get(term).copied()
    }

    fn postings(&self, id: u32) -> Option<&(Box<str>, Postings)> {
        self.terms.get(usize::try_from(id).ok()?)
    }

    fn frequency(&self, id: u32) -> usize {
        self.postings(id).map_or(0, |(_, postings)| postings.live())
    }

    /// Adds the lexical score of every document to `scores`, which has a value per slot. How rare a word is and how long
    /// documents are follows from `all` lexicons that are searched together, this one among them.
    pub(crate) fn score(&self, query: &[String], all: &[&Lexicon], scores: &mut [f32]) {
        let norms = Norms::of(Unit::Words, all);
        for (token, count) in counted(query) {
            let gain = query_gain(count);
            match self.find(token) {
                Some(id) => self.score_term(id, gain, (&norms, all), scores),
                // A word of another lexicon is not misspelt.
                None if all.iter().any(|other| other.find(token).is_some()) => {}
                None => {
                    for (id, weight) in self.corrections(token) {
                        self.score_term(id, gain * weight, (&norms, all), scores);
                    }
                }
            }
        }
        let norms = Norms::of(Unit::Pairs, all);
        let pairs: Vec<(&String, &String)> = query.iter().zip(query.iter().skip(1)).collect();
        for ((left, right), count) in counted(&pairs) {
            if let Some(postings) = self.pair_postings(left, right) {
                let frequencies = all.iter().filter_map(|other| other.pair_postings(left, right));
                let frequency = frequencies.map(Postings::live).sum();
                let gain = PAIR_WEIGHT * query_gain(count) * inverse_frequency(all, frequency);
                self.score_postings(postings, gain, &norms, scores);
            }
        }
    }

    fn score_term(&self, id: u32, gain: f32, (norms, all): (&Norms, &[&Lexicon]), scores: &mut [f32]) {
        let Some((term, postings)) = self.postings(id) else { return };
        let frequency = |other: &&Lexicon| other.find(term).map_or(0, |id| other.frequency(id));
        let gain = gain * inverse_frequency(all, all.iter().map(frequency).sum());
        self.score_postings(postings, gain, norms, scores);
    }

    fn pair_postings(&self, left: &str, right: &str) -> Option<&Postings> {
        self.pairs.get(&pair(self.find(left)?, self.find(right)?))
    }

    fn score_postings(&self, postings: &Postings, gain: f32, norms: &Norms, scores: &mut [f32]) {
        for posting in &postings.list {
            let index = usize::try_from(posting.slot).unwrap_or(usize::MAX);
            let (Some(score), Some(lengths)) = (scores.get_mut(index), self.lengths.get(index)) else {
                continue;
            };
            let x = norms.weigh(posting, lengths);
            *score += gain * (K1 + 1.0) * x / (K1 + x);
        }
    }

    /// Returns the terms that a misspelt word may mean, each with its weight.
    pub(crate) fn corrections(&self, word: &str) -> Vec<(u32, f32)> {
        if word.chars().count() < fuzzy::MIN_LETTERS || word.chars().all(char::is_numeric) {
            return Vec::new();
        }
        let trigrams = fuzzy::trigrams(word);
        let mut shared: Map<u32, usize> = Map::default();
        for id in trigrams.iter().filter_map(|trigram| self.trigrams.get(trigram)).flatten() {
            *shared.entry(*id).or_default() += 1;
        }
        let mut found: Vec<(u32, f32)> = shared
            .into_iter()
            .filter_map(|(id, count)| {
                let (term, _) = self.postings(id)?;
                Some((id, fuzzy::similarity(word, term, count, trigrams.len())?))
            })
            .collect();
        let term = |id: u32| self.postings(id).map(|(term, _)| term);
        found.sort_by(|(a, x), (b, y)| {
            let frequency = || self.frequency(*b).cmp(&self.frequency(*a));
            y.total_cmp(x).then_with(frequency).then_with(|| term(*a).cmp(&term(*b)))
        });
        found.truncate(fuzzy::MAX_CANDIDATES);
        found.into_iter().map(|(id, score)| (id, fuzzy::WEIGHT * score)).collect()
    }

    /// Returns the stems that a query token stands for: itself, or its corrections.
    pub(crate) fn matching_terms(&self, token: &str) -> Vec<&str> {
        match self.find(token) {
            Some(id) => self.postings(id).map(|(term, _)| &**term).into_iter().collect(),
            None => self
                .corrections(token)
                .into_iter()
                .filter_map(|(id, _)| self.postings(id).map(|(term, _)| &**term))
                .collect(),
        }
    }
}

impl Lexicon {
    /// Calls `found` with the documents that have a term in one of their fields, and how it fits the word.
    pub(crate) fn keyword(&self, word: &str, stem: &str, mut found: impl FnMut(u32, &[u8; FIELDS], Fit)) {
        let mut visit = |id: u32, fit: Fit| {
            for posting in self.postings(id).into_iter().flat_map(|(_, postings)| &postings.list) {
                found(posting.slot, &posting.counts, fit);
            }
        };
        let range = self.ids.range::<str, _>((Bound::Included(word), Bound::Unbounded));
        for (term, id) in range.take_while(|(term, _)| term.starts_with(word)) {
            if &**term != stem {
                visit(*id, Fit::Prefix);
            }
        }
        if let Some(id) = self.find(stem) {
            visit(id, Fit::Whole);
        }
        for (id, distance) in self.similar(stem) {
            if distance > 0 {
                visit(id, Fit::Similar);
            }
        }
    }

    /// Returns the terms within the edit distance that a word of this length may have.
    fn similar(&self, word: &str) -> Vec<(u32, usize)> {
        let letters: Vec<char> = word.chars().collect();
        let limit = match letters.len() {
            0..=3 => return Vec::new(),
            4..=7 => 1,
            _ => 2,
        };
        let mut candidates: Vec<u32> = Vec::new();
        for trigram in fuzzy::trigrams(word) {
            candidates.extend(self.trigrams.get(&trigram).into_iter().flatten());
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
            .into_iter()
            .filter_map(|id| {
                let (term, _) = self.postings(id)?;
                let other: Vec<char> = term.chars().collect();
                Some((id, fuzzy::edit_distance(&letters, &other, limit)?))
            })
            .collect()
    }
}

/// How a term fits a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// The term is the word or another form of it.
    Whole,
    /// The term starts with the word.
    Prefix,
    /// The term is the word but for a few letters.
    Similar,
}

/// Which lengths a field is measured in.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Words,
    Pairs,
}

/// The parts of the length normalisation that a query shares: `weight / (base + factor * length)`.
struct Norms {
    unit: Unit,
    base: [f32; FIELDS],
    factor: [f32; FIELDS],
}

impl Norms {
    #[expect(clippy::cast_precision_loss, reason = "an average need not be exact")]
    fn of(unit: Unit, all: &[&Lexicon]) -> Self {
        let mut norms = Self { unit, base: LENGTH_NORM.map(|b| 1.0 - b), factor: LENGTH_NORM };
        let documents: usize = all.iter().map(|lexicon| lexicon.documents).sum();
        for (field, factor) in norms.factor.iter_mut().enumerate() {
            let totals = all.iter().map(|lexicon| match unit {
                Unit::Words => &lexicon.total_lengths,
                Unit::Pairs => &lexicon.total_pairs,
            });
            let total: u64 = totals.filter_map(|totals| totals.get(field)).sum();
            *factor /= (total as f32 / documents.max(1) as f32).max(1e-6);
        }
        norms
    }

    fn weigh(&self, posting: &Posting, lengths: &[u16; FIELDS]) -> f32 {
        let mut sum = 0.0;
        let fields = posting.counts.iter().zip(lengths).zip(WEIGHTS).zip(self.base.iter().zip(&self.factor));
        for (((count, length), weight), (base, factor)) in fields {
            if *count > 0 {
                let length = match self.unit {
                    Unit::Words => *length,
                    Unit::Pairs => length.saturating_sub(1),
                };
                sum += weight * f32::from(*count) / (base + factor * f32::from(length));
            }
        }
        sum
    }
}

#[expect(clippy::cast_precision_loss, reason = "catalogues have far fewer tools than f32 has integers")]
fn inverse_frequency(all: &[&Lexicon], frequency: usize) -> f32 {
    let documents: usize = all.iter().map(|lexicon| lexicon.documents).sum();
    let (documents, frequency) = (documents as f32, frequency as f32);
    (1.0 + (documents - frequency + 0.5) / (frequency + 0.5)).ln()
}

/// Returns the trigrams under which a term is found; very short terms are not corrections of anything.
fn indexed_trigrams(term: &str) -> Vec<[char; 3]> {
    if term.chars().count() < 3 { Vec::new() } else { fuzzy::trigrams(term) }
}

/// How much a query term counts that occurs `count` times.
fn query_gain(count: usize) -> f32 {
    let count = f32::from(u16::try_from(count).unwrap_or(u16::MAX));
    (K3 + 1.0) * count / (K3 + count)
}

/// Returns the pairs of neighbouring terms of a document, each once.
fn distinct_pairs(terms: &[u32], lengths: &[u16; FIELDS]) -> Vec<u64> {
    let (mut pairs, mut rest) = (Vec::with_capacity(terms.len()), terms);
    for length in lengths {
        let (field, others) = rest.split_at(usize::from(*length).min(rest.len()));
        pairs.extend(field.iter().zip(field.iter().skip(1)).map(|(left, right)| pair(*left, *right)));
        rest = others;
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn pair(left: u32, right: u32) -> u64 {
    u64::from(left) << 32 | u64::from(right)
}

fn increment(counts: &mut [u8; FIELDS], field: usize) {
    if let Some(count) = counts.get_mut(field) {
        *count = count.saturating_add(1);
    }
}

/// Returns each value once with its number of occurrences, in order of appearance.
fn counted<T: Eq + std::hash::Hash>(values: &[T]) -> Vec<(&T, usize)> {
    let mut places: HashMap<&T, usize> = HashMap::new();
    let mut counted: Vec<(&T, usize)> = Vec::new();
    for value in values {
        let place = *places.entry(value).or_insert_with(|| {
            counted.push((value, 0));
            counted.len() - 1
        });
        if let Some((_, count)) = counted.get_mut(place) {
            *count += 1;
        }
    }
    counted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a tool leaves behind would add up on a server that runs for months.
    #[test]
    fn removed_documents_leave_nothing_behind() {
        let mut lexicon = Lexicon::default();
        for number in 0..1000 {
            let tokens = |text: String| text.split(' ').map(str::to_owned).collect();
            let name = tokens("same".to_owned());
            let description = tokens(format!("word{number} other{number}"));
            lexicon.put(0, [name, description, Vec::new(), Vec::new(), Vec::new()]);
            if number < 999 {
                lexicon.remove(0);
            }
        }
        assert_eq!((lexicon.ids.len(), lexicon.terms.len(), lexicon.pairs.len()), (3, 3, 1));
        lexicon.remove(0);
        assert_eq!((lexicon.ids.len(), lexicon.pairs.len(), lexicon.trigrams.len()), (0, 0, 0));
        assert_eq!((lexicon.terms.len(), lexicon.free.len(), lexicon.documents), (3, 3, 0));
    }
}
