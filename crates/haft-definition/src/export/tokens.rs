//! Estimates the number of tokens of a definition, without the vocabulary of a model.
//!
//! The estimate counts words, as tokenizers do. Measured against `o200k_base` (GPT-4o and later) over the compact JSON of the
//! definitions of GitHub's API, the built-in tools and five MCP servers: the sum is 4 % too high; of single definitions
//! nine tenths are between 2 % below and 11 % above, the worst 17 % above. Providers format definitions differently,
//! which makes a difference of similar size.

use serde_json::Value;

/// The number of letters of a word that is one token.
const WORD: usize = 10;
/// In longer words, each of these many additional letters is another token.
const MORE_LETTERS: usize = 5;
/// The number of digits or punctuation characters per token.
const SIGNS: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Letters,
    Digits,
    Blanks,
    Signs,
    /// Alphabets of two bytes a letter: about three letters a token.
    Alphabet,
    /// Characters that are a word or more each.
    Ideographs,
}

fn kind(c: char) -> Kind {
    match c {
        'a'..='z' | 'A'..='Z' => Kind::Letters,
        '0'..='9' => Kind::Digits,
        _ if c.is_whitespace() => Kind::Blanks,
        _ if c.is_ascii() => Kind::Signs,
        _ if c.len_utf8() == 2 => Kind::Alphabet,
        _ => Kind::Ideographs,
    }
}

/// Estimates the number of tokens of a definition.
pub fn estimate_tokens(definition: &Value) -> usize {
    // A `Value` always serialises; the fallback keeps the function total.
    of_text(&serde_json::to_string(definition).unwrap_or_default())
}

fn of_text(text: &str) -> usize {
    let (mut fifths, mut run, mut last) = (0, 0, None);
    for c in text.chars() {
        let kind = kind(c);
        if last.is_some_and(|last| last != kind) {
            fifths += of_run(last, run);
            run = 0;
        }
        // The first space belongs to the next word.
        run += usize::from(kind != Kind::Blanks || c != ' ');
        last = Some(kind);
    }
    (fifths + of_run(last, run)).div_ceil(MORE_LETTERS)
}

/// Returns the tokens of a run of characters of one kind, in fifths.
fn of_run(kind: Option<Kind>, run: usize) -> usize {
    match kind {
        None => 0,
        Some(_) if run == 0 => 0,
        Some(Kind::Letters) => MORE_LETTERS + run.saturating_sub(WORD),
        Some(Kind::Digits | Kind::Alphabet) => MORE_LETTERS * run.div_ceil(SIGNS),
        Some(Kind::Blanks) => MORE_LETTERS,
        Some(Kind::Signs) => MORE_LETTERS + run.saturating_sub(SIGNS) * MORE_LETTERS / SIGNS,
        Some(Kind::Ideographs) => MORE_LETTERS * run,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The third value is the result of `o200k_base`.
    #[test]
    fn it_counts_words_and_signs() {
        for (text, expected, real) in [
            ("", 0, 0),
            ("Check current weather for a location", 6, 6),
            ("internationalization", 3, 2),
            (r#"{"type":"object","properties":{}}"#, 8, 9),
            ("1234567", 3, 3),
            ("天気を調べる", 6, 6),
            ("Погода", 2, 3),
        ] {
            assert_eq!(of_text(text), expected, "{text} ({real})");
        }
        let definition = json!({"name": "weather", "description": "Current weather"});
        assert_eq!(estimate_tokens(&definition), of_text(&definition.to_string()));
    }
}
