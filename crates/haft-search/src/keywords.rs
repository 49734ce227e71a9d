//! Search by one or two keywords, in tiers: name prefix, whole word, start of a word, similar word.
//!
//! Every keyword must fit. The tiers are so far apart that no number of lesser fits outweighs a better one.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::lexicon::{Fit, Lexicon};
use crate::tokens::{is_stop_word, stem};

const NAME_PREFIX: u32 = 4000;
const WHOLE_WORD: u32 = 2000;
const WORD_START: u32 = 1000;
const SIMILAR: u32 = 500;
/// The name is, or starts with, the whole query.
pub(crate) const WHOLE_QUERY: u32 = 400;
const QUERY_PREFIX: u32 = 200;

/// The most letters of a word that are compared.
const MAX_LETTERS: usize = 64;

/// Where a keyword was found, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Name,
    Title,
    Tag,
    Description,
}

impl Field {
    /// Orders the fits of one tier.
    const fn bonus(self) -> u32 {
        match self {
            Self::Name => 30,
            Self::Title => 20,
            Self::Tag => 10,
            Self::Description => 0,
        }
    }
}

/// The words of names and titles.
#[derive(Debug, Default)]
pub(crate) struct Names {
    words: BTreeMap<Box<str>, Vec<(u32, Field)>>,
}

impl Names {
    pub(crate) fn put(&mut self, slot: u32, name: &str, title: &str) {
        for (text, field) in [(name, Field::Name), (title, Field::Title)] {
            for word in words(text) {
                let list = self.words.entry(word.into()).or_default();
                let at = list.partition_point(|(other, _)| *other <= slot);
                // A word of the name that the title repeats stays a word of the name.
                if list.get(..at).and_then(<[_]>::last).is_none_or(|(other, _)| *other != slot) {
                    list.insert(at, (slot, field));
                }
            }
        }
    }

    pub(crate) fn remove(&mut self, slot: u32, name: &str, title: &str) {
        for word in words(name).chain(words(title)) {
            let Some(list) = self.words.get_mut(word.as_str()) else { continue };
            if let Ok(at) = list.binary_search_by_key(&slot, |(slot, _)| *slot) {
                list.remove(at);
            }
            if list.is_empty() {
                self.words.remove(word.as_str());
            }
        }
    }
}

/// Splits a text into lower-case words of letters and digits.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| word.chars().flat_map(char::to_lowercase).take(MAX_LETTERS).collect())
}

/// Returns the keywords of a query.
pub(crate) fn keywords(query: &str) -> Vec<String> {
    words(query).collect()
}

/// Returns the tier of every slot, 0 where a keyword does not fit.
pub(crate) fn tiers(names: &Names, lexicon: &Lexicon, keywords: &[String], slots: usize) -> Vec<u32> {
    let mut total = vec![0_u32; slots];
    for (position, keyword) in keywords.iter().enumerate() {
        let fits = fits(names, lexicon, keyword, slots);
        for (sum, fit) in total.iter_mut().zip(fits) {
            let missed = fit == 0 || (position > 0 && *sum == 0);
            *sum = if missed { 0 } else { *sum + fit };
        }
    }
    total
}

/// Returns how well one keyword fits every slot.
fn fits(names: &Names, lexicon: &Lexicon, keyword: &str, slots: usize) -> Vec<u32> {
    let mut best = vec![0_u32; slots];
    let mut fit = |slot: u32, tier: u32| {
        if let Some(best) = usize::try_from(slot).ok().and_then(|slot| best.get_mut(slot)) {
            *best = (*best).max(tier);
        }
    };
    let range = names.words.range::<str, _>((Bound::Included(keyword), Bound::Unbounded));
    for (word, list) in range.take_while(|(word, _)| word.starts_with(keyword)) {
        let exact = if word.len() == keyword.len() { 50 } else { 0 };
        for (slot, field) in list {
            fit(*slot, NAME_PREFIX + field.bonus() + exact);
        }
    }
    let stem = if is_stop_word(keyword) { keyword.to_owned() } else { stem(keyword) };
    lexicon.keyword(keyword, &stem, |slot, counts, how| {
        let [name, description, _, _, tags] = *counts;
        let field = match (name, tags, description) {
            (1.., _, _) => Field::Name,
            (_, 1.., _) => Field::Tag,
            (_, _, 1..) => Field::Description,
            _ => return,
        };
        let (tier, exact) = match how {
            Fit::Whole => (WHOLE_WORD, 50),
            Fit::Prefix => (WORD_START, 0),
            Fit::Similar => (SIMILAR, 0),
        };
        fit(slot, tier + field.bonus() + exact);
    });
    best
}

/// Rewards a name or title that is, or starts with, the query as a whole.
pub(crate) fn whole_query(name: &str, title: &str, query: &str) -> u32 {
    if name == query || title == query {
        WHOLE_QUERY
    } else if name.starts_with(query) || title.starts_with(query) {
        QUERY_PREFIX
    } else {
        0
    }
}
