//! A static embedding: the vector of a text is the sum of the vectors of its word pieces.
//!
//! The model is a table of 16,000 word pieces with 256 int8 values each (`model/`, described in `docs/search.md`). It is
//! part of the binary unless the feature `embedding` is off.
#![cfg_attr(
    not(feature = "embedding"),
    expect(dead_code, reason = "there is no model to compute vectors with")
)]

use std::collections::HashMap;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::document::{Document, FIELDS};
use crate::tokens::{camel_parts, is_camel_case};

/// Values of a vector.
pub(crate) const DIMENSIONS: usize = 256;
/// Values that are compared in large catalogues. The training allows cutting the vector short.
pub(crate) const SHORT: usize = 128;

/// What each field of a document counts, and how many of its characters.
const FIELD_WEIGHTS: [(f32, usize); FIELDS] =
    [(1.0, usize::MAX), (1.0, 600), (0.5, 300), (0.25, 400), (0.5, usize::MAX)];
/// The most pieces of a query segment that count.
const MAX_QUERY_PIECES: usize = 256;
/// The most letters of a word that count.
const MAX_WORD: usize = 60;
/// The most sentences of a query that are compared on their own.
const MAX_SENTENCES: usize = 8;
/// Shorter sentences are not compared on their own.
const MIN_SENTENCE_WORDS: usize = 3;

#[cfg(feature = "embedding")]
static FILE: &[u8] = include_bytes!("../model/haft-embed-16k-256.bin");

/// Returns the model of this binary, if it has one.
pub(crate) fn model() -> Option<&'static Model> {
    #[cfg(feature = "embedding")]
    {
        static MODEL: std::sync::LazyLock<Option<Model>> = std::sync::LazyLock::new(|| Model::parse(FILE));
        MODEL.as_ref()
    }
    #[cfg(not(feature = "embedding"))]
    {
        None
    }
}

/// The table of word pieces.
#[derive(Debug)]
pub(crate) struct Model {
    /// Pieces at the start of a word.
    starts: HashMap<&'static str, u32, foldhash::fast::FixedState>,
    /// Pieces inside a word.
    continuations: HashMap<&'static str, u32, foldhash::fast::FixedState>,
    /// The letters of the longest piece.
    longest: usize,
    scales: Vec<f32>,
    rows: &'static [u8],
}

/// A vector of a text, before it is scaled.
type Sum = [f32; DIMENSIONS];

/// A vector of length 1 with int8 values: `value * scale`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Vector {
    pub(crate) values: [i8; DIMENSIONS],
    /// The scale of all values.
    pub(crate) scale: f32,
    /// The scale if only the first [`SHORT`] values are used.
    pub(crate) short_scale: f32,
}

impl Model {
    /// Reads a model file: `HAFTEMB1`, counts, pieces, row scales, rows; little endian.
    fn parse(file: &'static [u8]) -> Option<Self> {
        let rest = file.strip_prefix(b"HAFTEMB1")?;
        let number = |at: usize| {
            let bytes = rest.get(at..at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_le_bytes(bytes)).ok()
        };
        let (count, dimensions, text_length) = (number(0)?, number(4)?, number(8)?);
        let (text, rest) = rest.get(12..)?.split_at_checked(text_length)?;
        let (scales, rows) = rest.split_at_checked(4 * count)?;
        if dimensions != DIMENSIONS || rows.len() != count * dimensions {
            return None;
        }
        let (scales, _) = scales.as_chunks::<4>();
        let mut model = Self {
            starts: HashMap::default(),
            continuations: HashMap::default(),
            longest: 0,
            scales: scales.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            rows,
        };
        for (piece, row) in std::str::from_utf8(text).ok()?.split('\n').zip(0..) {
            model.longest = model.longest.max(piece.chars().count());
            match piece.strip_prefix("##") {
                Some(inner) => model.continuations.insert(inner, row),
                None => model.starts.insert(piece, row),
            };
        }
        Some(model)
    }

    /// Returns the rows of the pieces of a text.
    fn pieces(&self, text: &str) -> Vec<u32> {
        let mut pieces = Vec::new();
        for word in split_words(text).split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let end = word.char_indices().nth(MAX_WORD).map_or(word.len(), |(at, _)| at);
            self.word_pieces(word.get(..end).unwrap_or_default(), &mut pieces);
        }
        pieces
    }

    /// Splits a word greedily into its longest known pieces; a letter that starts none is skipped.
    fn word_pieces(&self, word: &str, pieces: &mut Vec<u32>) {
        let mut rest = word;
        while let Some(first) = rest.chars().next() {
            let table = if rest.len() == word.len() { &self.starts } else { &self.continuations };
            let ends = rest.char_indices().map(|(at, c)| at + c.len_utf8()).take(self.longest);
            let ends: Vec<usize> = ends.collect();
            let found = ends.iter().rev().find_map(|end| {
                let (piece, after) = rest.split_at_checked(*end)?;
                Some((table.get(piece)?, after))
            });
            rest = match found {
                Some((row, after)) => {
                    pieces.push(*row);
                    after
                }
                None => rest.get(first.len_utf8()..).unwrap_or_default(),
            };
        }
    }

    fn add(&self, pieces: &[u32], weight: f32, sum: &mut Sum) {
        for row in pieces.iter().filter_map(|row| usize::try_from(*row).ok()) {
            let values = self.rows.get(row * DIMENSIONS..(row + 1) * DIMENSIONS);
            let (Some(values), Some(scale)) = (values, self.scales.get(row)) else { continue };
            let factor = weight * scale;
            for (total, value) in sum.iter_mut().zip(values) {
                *total += factor * f32::from(value.cast_signed());
            }
        }
    }

    /// Returns the vector of a tool.
    pub(crate) fn document(&self, document: &Document) -> Vector {
        let mut sum = [0.0; DIMENSIONS];
        for (text, (weight, characters)) in document.fields().into_iter().zip(FIELD_WEIGHTS) {
            let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
            self.add(&self.pieces(text.get(..end).unwrap_or_default()), weight, &mut sum);
        }
        Vector::of(&sum)
    }

    /// Returns the vectors of a query: of the whole, and of its sentences if it has several.
    pub(crate) fn query(&self, query: &str) -> Vec<Vector> {
        let sentences: Vec<&str> = sentences(query)
            .into_iter()
            .filter(|sentence| sentence.split_whitespace().count() >= MIN_SENTENCE_WORDS)
            .take(MAX_SENTENCES)
            .collect();
        let sentences = if sentences.len() > 1 { sentences } else { Vec::new() };
        std::iter::once(query)
            .chain(sentences)
            .map(|segment| {
                let mut pieces = self.pieces(segment);
                pieces.truncate(MAX_QUERY_PIECES);
                let mut sum = [0.0; DIMENSIONS];
                self.add(&pieces, 1.0, &mut sum);
                Vector::of(&sum)
            })
            .collect()
    }
}

impl Vector {
    fn of(sum: &Sum) -> Self {
        let length = |values: &[f32]| values.iter().map(|value| value * value).sum::<f32>().sqrt().max(1e-6);
        let largest = sum.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        let step = largest / 127.0 + 1e-12;
        #[expect(clippy::cast_possible_truncation, reason = "the values are between -127 and 127")]
        let values = sum.map(|value| (value / step).round_ties_even() as i8);
        let short = sum.get(..SHORT).unwrap_or_default();
        Self { values, scale: step / length(sum), short_scale: step / length(short) }
    }
}

/// Returns the text in lower case, without accents, with spaces between the parts of identifiers.
fn split_words(text: &str) -> String {
    let mut spaced = String::with_capacity(text.len() + 16);
    for word in text.split(['_', '-', '.', '/', '{', '}', ':']) {
        if is_camel_case(word) {
            for part in camel_parts(word) {
                spaced.push_str(part);
                spaced.push(' ');
            }
        } else {
            spaced.push_str(word);
            spaced.push(' ');
        }
    }
    spaced.nfd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect()
}

/// Splits a query after punctuation, at line ends, and at words that join requests (`and then`, `also`).
fn sentences(query: &str) -> Vec<&str> {
    const JOINS: [&str; 4] = [" and then ", " then ", " and also ", " also "];
    let mut sentences = Vec::new();
    let (mut start, mut at) = (0, 0);
    while let Some(rest) = query.get(at..).filter(|rest| !rest.is_empty()) {
        let before = query.get(..at).and_then(|text| text.chars().next_back());
        let after_punctuation = matches!(before, Some('.' | '?' | '!' | ';'));
        let blank = rest.len() - rest.trim_start().len();
        let line_ends = rest.len() - rest.trim_start_matches('\n').len();
        let joined = rest.strip_prefix(',').unwrap_or(rest);
        let join = JOINS.iter().find(|join| joined.starts_with(**join));
        let separator = match join {
            _ if after_punctuation && blank > 0 => blank,
            _ if line_ends > 0 => line_ends,
            Some(join) => rest.len() - joined.len() + join.len(),
            None => 0,
        };
        if separator > 0 {
            sentences.push(query.get(start..at).unwrap_or_default());
            start = at + separator;
            at = start;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    sentences.push(query.get(start..).unwrap_or_default());
    sentences
}

/// Returns the dot product of two int8 vectors.
pub(crate) fn dot(left: &[i8], right: &[i16]) -> i32 {
    left.iter().zip(right).map(|(a, b)| i32::from(i16::from(*a)) * i32::from(*b)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_split_into_requests() {
        for (query, expected) in [
            ("find the file. delete it", vec!["find the file.", "delete it"]),
            ("find it, and then send a mail", vec!["find it", "send a mail"]),
            ("one\n\ntwo", vec!["one", "two"]),
            ("a then b also c", vec!["a", "b", "c"]),
            ("v1.2 stays", vec!["v1.2 stays"]),
            ("", vec![""]),
        ] {
            assert_eq!(sentences(query), expected, "{query}");
        }
    }

    #[test]
    fn identifiers_are_split_for_the_embedding() {
        assert_eq!(split_words("getÉtat/{id}:x_y-z"), "getetat  id  x y z ");
    }

    #[cfg(feature = "embedding")]
    #[test]
    fn the_model_is_complete_and_gives_meaning() {
        let model = model().unwrap();
        assert_eq!((model.scales.len(), model.starts.len() + model.continuations.len()), (16_000, 16_000));
        let cosine = |left: &str, right: &str| {
            let (a, b) = (model.query(left).remove(0), model.query(right).remove(0));
            let right: Vec<i16> = b.values.iter().map(|value| i16::from(*value)).collect();
            f64::from(dot(&a.values, &right)) * f64::from(a.scale * b.scale)
        };
        assert!((cosine("send an email", "send an email") - 1.0).abs() < 0.01);
        assert!(cosine("send an email", "mail a message") > cosine("send an email", "delete a branch") + 0.1);
    }
}
