//! Problems of definitions: each with its field, its position in the source text, and a message.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The code of a check that could not run; it is a warning, not an error.
pub const NOT_CHECKED: &str = "not_checked";

/// The code of a module that a script imports and that is not installed; it is a warning, because the script may catch
/// the error.
pub const MISSING_IMPORT: &str = "missing_import";

/// The code of a reference to something that is not published; debug mode uses it nevertheless.
pub const NOT_PUBLISHED: &str = "not_published";

/// One error or warning about a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// The dotted path of the field, such as `implementation.url`; empty for the whole document.
    #[cfg_attr(feature = "openapi", schema(example = "implementation.url"))]
    pub field: String,
    /// A stable error code, such as `missing_field`.
    #[cfg_attr(feature = "openapi", schema(example = "missing_field"))]
    pub code: String,
    /// What is wrong and what was expected.
    #[cfg_attr(feature = "openapi", schema(example = "missing `url`"))]
    pub message: String,
    /// The line of the source text, counted from 1, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub line: Option<u32>,
    /// The column of the source text, counted from 1, if known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub column: Option<u32>,
}

impl Problem {
    /// Creates a problem without a source position.
    pub fn new(field: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self { field: field.into(), code: code.to_owned(), message: message.into(), line: None, column: None }
    }

    /// Sets the source position.
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

/// Joins several problems for a log line or an error message.
pub fn join(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// Returns at most `limit` characters of a text, with control characters replaced.
pub fn excerpt(text: &str, limit: usize) -> String {
    let mut out: String =
        text.chars().take(limit).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(limit).is_some() {
        out.push('…');
    }
    out
}

/// Returns the known word that is most similar to a misspelled one, if any is similar enough.
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

/// Returns the type of JSON Schema that a word of another language stands for, or the most similar one.
pub fn nearest_type(word: &str) -> Option<&'static str> {
    const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];
    let lower = word.to_ascii_lowercase();
    let meant = match lower.as_str() {
        "str" | "text" | "char" | "varchar" | "date" | "datetime" | "uuid" => "string",
        "int" | "int32" | "int64" | "uint" | "i32" | "i64" | "long" | "short" => "integer",
        "float" | "float32" | "float64" | "double" | "decimal" | "f32" | "f64" => "number",
        "bool" | "flag" => "boolean",
        "list" | "tuple" | "set" | "vec" | "slice" => "array",
        "dict" | "map" | "hash" | "struct" | "json" => "object",
        "none" | "nil" | "void" => "null",
        _ => return nearest(word, TYPES),
    };
    Some(meant)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_other_languages_have_a_counterpart() {
        for (word, expected) in [
            ("int", Some("integer")),
            ("Integer", Some("integer")),
            ("str", Some("string")),
            ("bool", Some("boolean")),
            ("float64", Some("number")),
            ("dict", Some("object")),
            ("strin", Some("string")),
            ("color", None),
        ] {
            assert_eq!(nearest_type(word), expected, "{word}");
        }
    }
}
