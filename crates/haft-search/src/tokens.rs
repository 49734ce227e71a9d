//! From text to tokens: words, stop words, stems.

use std::sync::LazyLock;

use snowball_stemmers_rs::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization as _;

/// Words that say nothing about a tool.
const STOP_WORDS: &str = "a about above after again against all also am an and any are aren as at be because been before \
    being below between both but by can cannot could did do does doing don down during each few for from further get give \
    had has have having he help her here hers him his how i id if im in into is isn it its itself just know let like ll \
    looking me more most my myself need no nor not now of off on once one only or other our ours out over own please re s \
    same shall she should so some something such t tell than that the their theirs them then there these they this those \
    through to too under until up us use using ve very want was we were what when where which while who whom why will \
    with would you your yours";

static STOP: LazyLock<std::collections::HashSet<&'static str>> =
    LazyLock::new(|| STOP_WORDS.split_whitespace().collect());

static STEMMER: LazyLock<Stemmer> = LazyLock::new(|| Stemmer::create(Algorithm::English));

/// Returns the tokens of a text in order: lower-case stems without stop words. A camel-case word yields its joined form
/// and its parts.
pub(crate) fn tokens(text: &str) -> Vec<String> {
    let text: String = text.nfkc().collect();
    let mut tokens = Vec::new();
    for chunk in text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))) {
        let mut parts = Vec::new();
        for word in chunk.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
            let before = parts.len();
            parts.extend(camel_parts(word).map(str::to_lowercase));
            if parts.len() > before + 1 {
                tokens.push(parts.get(before..).unwrap_or_default().concat());
            }
        }
        tokens.append(&mut parts);
    }
    tokens.retain(|word| !STOP.contains(word.as_str()));
    for word in &mut tokens {
        if let std::borrow::Cow::Owned(stem) = STEMMER.stem(word) {
            *word = stem;
        }
    }
    tokens
}

/// Returns the stem of one lower-case word.
pub(crate) fn stem(word: &str) -> String {
    STEMMER.stem(word).into_owned()
}

/// Tells whether a word is a stop word.
pub(crate) fn is_stop_word(word: &str) -> bool {
    STOP.contains(word)
}

/// Splits a word where its case changes: `listIssues`, `HTTPServer`.
pub(crate) fn camel_parts(word: &str) -> impl Iterator<Item = &str> {
    let bytes = word.as_bytes();
    let mut start = 0;
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            at += 1;
            if at == bytes.len() || is_camel_boundary(bytes, at) {
                let part = word.get(start..at);
                start = at;
                return part;
            }
        }
        None
    })
}

/// Tells whether a new part starts at a byte: after a lower-case letter or digit before a capital, or before the last of
/// several capitals that a lower-case letter follows.
fn is_camel_boundary(bytes: &[u8], at: usize) -> bool {
    let byte = |index: usize| bytes.get(index).copied().unwrap_or_default();
    let (before, here, after) = (byte(at.wrapping_sub(1)), byte(at), byte(at + 1));
    here.is_ascii_uppercase()
        && (before.is_ascii_lowercase()
            || before.is_ascii_digit()
            || (before.is_ascii_uppercase() && after.is_ascii_lowercase()))
}

/// Tells whether a text changes case like a camel-case identifier.
pub(crate) fn is_camel_case(text: &str) -> bool {
    (1..text.len()).any(|at| is_camel_boundary(text.as_bytes(), at))
}

/// Reduces a text to its lower-case letters and digits, by which spellings of a name are compared.
pub(crate) fn letters_and_digits(text: &str) -> String {
    text.nfkc().flat_map(char::to_lowercase).filter(|c| c.is_alphanumeric()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_stems_without_stop_words() {
        for (text, expected) in [
            ("Convert the times between time zones", vec!["convert", "time", "time", "zone"]),
            ("listIssues", vec!["listissu", "list", "issu"]),
            ("HTTPServer2Go", vec!["httpserver2go", "http", "server2", "go"]),
            ("repos/get-content_v2", vec!["repo", "content", "v2"]),
            ("Ünïcode ﬁles", vec!["ünïcode", "file"]),
            ("the of and", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(tokens(text), expected, "{text}");
        }
    }

    #[test]
    fn camel_case_is_split_where_the_case_changes() {
        for (word, expected) in [
            ("aBc", vec!["a", "Bc"]),
            ("ABc", vec!["A", "Bc"]),
            ("ABC", vec!["ABC"]),
            ("x1Y", vec!["x1", "Y"]),
            ("", vec![]),
            ("éB", vec!["éB"]),
        ] {
            assert_eq!(camel_parts(word).collect::<Vec<_>>(), expected, "{word}");
        }
    }
}
