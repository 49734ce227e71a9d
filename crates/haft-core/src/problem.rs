//! What is wrong with a definition: one entry per fault, each with its place and its remedy.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The code of what could not be looked at: a doubt, not a fault.
pub const NOT_CHECKED: &str = "not_checked";

/// One fault or doubt about a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    /// Where, as a dotted path such as `implementation.url`; empty for the whole document.
    pub field: String,
    /// A stable name of the fault, such as `missing_field`.
    pub code: String,
    /// What is wrong and what was expected, for a person.
    pub message: String,
    /// The line of the source text, counted from 1, where it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// The column of the source text, counted from 1, where it is known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<u32>,
}

impl Problem {
    /// Makes a problem without a place in a text.
    pub fn new(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code: code.to_owned(), message: message.into(), line: None, column: None }
    }

    /// Adds the line and column where the fault stands.
    #[must_use]
    pub fn at(mut self, line: u32, column: Option<u32>) -> Self {
        self.line = Some(line);
        self.column = column;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}")?;
            if let Some(column) = self.column {
                write!(f, ", column {column}")?;
            }
            f.write_str(": ")?;
        }
        if !self.field.is_empty() {
            write!(f, "`{}`: ", self.field)?;
        }
        f.write_str(&self.message)
    }
}

/// Joins several problems to one sentence for a log line or an error message.
pub fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns at most `limit` characters of a text, made harmless for one line of output.
pub fn excerpt(text: &str, limit: usize) -> String {
    let mut out: String =
        text.chars().take(limit).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

/// Returns the known word that a misspelt one was probably meant to be.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase();
    known
        .into_iter()
        .map(|candidate| {
            (strsim::normalized_damerau_levenshtein(&word, &candidate.to_lowercase()), candidate)
        })
        .filter(|(score, _)| *score >= 0.6)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate)
}
