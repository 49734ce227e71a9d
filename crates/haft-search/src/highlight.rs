//! Which parts of a text a query matched.

use crate::tokens::{camel_parts, stem};

/// Returns the ranges (start, end), in characters, of the words in `text` that are forms of `terms` or start with one of `prefixes`.
pub fn highlight(text: &str, terms: &[String], prefixes: &[String]) -> Vec<(usize, usize)> {
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    let mut at = 0;
    for run in text.split_inclusive(|c: char| !c.is_alphanumeric()) {
        let word = run.trim_end_matches(|c: char| !c.is_alphanumeric());
        let mut start = at;
        for part in camel_parts(word) {
            let length = part.chars().count();
            let lower = part.to_lowercase();
            let matched = prefixes.iter().any(|prefix| lower.starts_with(prefix.as_str()))
                || terms.contains(&stem(&lower));
            if matched {
                ranges.push((start, start + length));
            }
            start += length;
        }
        at += run.chars().count();
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_and_prefixes_are_marked() {
        let terms = [stem("issues")];
        let prefixes = ["repo".to_owned()];
        for (text, expected) in [
            ("List issues", vec![(5, 11)]),
            ("listIssue", vec![(4, 9)]),
            ("ü issue, repository", vec![(2, 7), (9, 19)]),
            ("tissue", vec![]),
        ] {
            assert_eq!(highlight(text, &terms, &prefixes), expected, "{text}");
        }
    }
}
