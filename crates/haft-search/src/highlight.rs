//! Which parts of a text a query matched.

use crate::tokens::{camel_parts, stem};

/// The most matched words that are returned.
const MAX_WORDS: usize = 32;

/// Marks the words of texts that a query matches.
#[derive(Debug, Clone, Default)]
pub struct Matcher {
    /// The stems of the query's words, corrected.
    pub(crate) terms: Vec<String>,
    /// The beginnings of words that match, in lower case.
    pub(crate) prefixes: Vec<String>,
}

impl Matcher {
    /// Returns the ranges (start, end) of the matching words of a text, in characters.
    pub fn ranges(&self, text: &str) -> Vec<(usize, usize)> {
        let mut ranges = Vec::new();
        self.visit(text, |start, word, _| ranges.push((start, start + word.chars().count())));
        ranges
    }

    /// Returns the matching words of texts, in lower case, each once, at most 32.
    pub fn words<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        for text in texts {
            self.visit(text, |_, _, lower| {
                if words.len() < MAX_WORDS && !words.contains(&lower) {
                    words.push(lower);
                }
            });
        }
        words
    }

    /// Calls `found` with the position of each matching word, the word, and its lower-case form.
    fn visit(&self, text: &str, mut found: impl FnMut(usize, &str, String)) {
        if self.terms.is_empty() && self.prefixes.is_empty() {
            return;
        }
        let mut at = 0;
        for run in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
            let word = run.trim_end_matches(|c: char| !c.is_alphanumeric());
            let mut start = at;
            for part in camel_parts(word) {
                let lower = part.to_lowercase();
                let length = part.chars().count();
                let is_match = self.prefixes.iter().any(|prefix| lower.starts_with(prefix.as_str()))
                    || self.terms.contains(&stem(&lower));
                if is_match {
                    found(start, part, lower);
                }
                start += length;
            }
            at += run.chars().count();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_and_prefixes_are_marked() {
        let matcher = Matcher { terms: vec![stem("issues")], prefixes: vec!["repo".to_owned()] };
        for (text, expected, words) in [
            ("List issues", vec![(5, 11)], vec!["issues"]),
            ("listIssue", vec![(4, 9)], vec!["issue"]),
            ("ü issue, repository, Issue", vec![(2, 7), (9, 19), (21, 26)], vec!["issue", "repository"]),
            ("tissue", vec![], vec![]),
        ] {
            assert_eq!(
                (matcher.ranges(text), matcher.words([text])),
                (expected, words.into_iter().map(str::to_owned).collect()),
                "{text}"
            );
        }
    }
}
