//! From text to index terms: words, lower case, stems.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::LazyLock;

use snowball_stemmers_rs::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_combining_mark;

use crate::Language;

/// The length in bytes from which on a word is cut: identifiers and hashes stay searchable, a file without spaces costs little.
const MAX_WORD: usize = 64;
/// The number of distinct words of a query that count.
const MAX_QUERY_WORDS: usize = 256;

static ENGLISH: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));
static GERMAN: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::German));

/// Returns the terms of a text in order, for the index.
pub(crate) fn terms(text: &str, language: Language) -> Vec<String> {
    let mut terms = Vec::new();
    for_each_word(text, |word| terms.push(stem(word, language)));
    terms
}

/// Returns the first distinct words of a query, each with its stem in every language. Stop words are left out unless the
/// query has nothing else.
pub(crate) fn query_terms(text: &str, languages: &[Language]) -> Vec<Vec<String>> {
    let mut words: Vec<String> = Vec::new();
    let mut known: HashSet<String> = HashSet::new();
    for_each_word(text, |word| {
        if known.insert(word.to_owned()) {
            words.push(word.to_owned());
        }
    });
    let is_stop_word = |word: &String| languages.iter().all(|language| language.is_stop_word(word));
    if !words.iter().all(is_stop_word) {
        words.retain(|word| !is_stop_word(word));
    }
    let mut known: HashSet<Vec<String>> = HashSet::new();
    let stems_of = |word: &String| {
        let mut stems: Vec<String> = languages.iter().map(|language| stem(word, *language)).collect();
        stems.dedup();
        stems
    };
    words.iter().map(stems_of).filter(|stems| known.insert(stems.clone())).take(MAX_QUERY_WORDS).collect()
}

/// Calls a function with every lower-case word. Scripts without spaces between words yield pairs of characters.
fn for_each_word(text: &str, mut each: impl FnMut(&str)) {
    let mut word = String::new();
    let mut previous_ideograph: Option<char> = None;
    let mut paired = false;
    for c in text.nfkc().flat_map(char::to_lowercase).chain(std::iter::once(' ')) {
        if is_ideograph(c) {
            flush(&mut word, &mut each);
            if let Some(previous) = previous_ideograph {
                each(&[previous, c].iter().collect::<String>());
                paired = true;
            }
            previous_ideograph = Some(c);
            continue;
        }
        if let Some(single) = previous_ideograph.take().filter(|_| !paired) {
            each(single.encode_utf8(&mut [0; 4]));
        }
        paired = false;
        if c.is_alphanumeric() || (is_combining_mark(c) && !word.is_empty()) {
            if word.len() < MAX_WORD {
                word.push(c);
            }
        } else {
            flush(&mut word, &mut each);
        }
    }
}

fn flush(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        each(word);
        word.clear();
    }
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

/// Returns the stem of a lower-case word without diacritics, so that `Café` matches `cafe`.
fn stem(word: &str, language: Language) -> String {
    let stemmer = match language {
        Language::English => &ENGLISH,
        Language::German => &GERMAN,
    };
    let stem: Cow<'_, str> = stemmer.stem(word);
    if stem.is_ascii() { stem.into_owned() } else { stem.nfd().filter(|c| !is_combining_mark(*c)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_stems_of_their_language() {
        for (text, language, expected) in [
            ("Running houses, 42 TIMES", Language::English, vec!["run", "hous", "42", "time"]),
            ("Die Häuser der Städte", Language::German, vec!["die", "haus", "der", "stadt"]),
            ("Café naïve", Language::English, vec!["cafe", "naiv"]),
            ("max_tokens=3", Language::English, vec!["max", "token", "3"]),
            ("東京都 x 京", Language::English, vec!["東京", "京都", "x", "京"]),
            ("", Language::English, vec![]),
        ] {
            assert_eq!(terms(text, language), expected, "{text}");
        }
    }

    #[test]
    fn a_word_without_end_is_cut() {
        let terms = terms(&"x".repeat(1_000_000), Language::English);
        assert_eq!(terms, ["x".repeat(MAX_WORD)]);
    }

    #[test]
    fn a_query_drops_stop_words_unless_it_has_nothing_else() {
        let query = |text| query_terms(text, &[Language::English]);
        assert_eq!(query("how do the wings of a wing fly"), [["wing"], ["fli"]]);
        assert_eq!(query("to be or not to be"), [["to"], ["be"], ["or"], ["not"]]);
        assert_eq!(query_terms("houses", &Language::ALL), [["hous"]]);
        assert_eq!(query_terms("meetings", &Language::ALL), [["meet", "meeting"]]);
    }
}
