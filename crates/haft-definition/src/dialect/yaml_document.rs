//! A YAML document that contains definitions beside other fields, such as the manifest of a toolset.

use serde_json::Value;

use super::document::{Document, split_front_matter};
use super::yaml::Bounds;
use haft_core::problem::Problem;

/// The limits of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// The maximum size of the text, and of all texts in it with aliases expanded, in bytes.
    pub bytes: usize,
    /// The maximum number of values, with aliases expanded.
    pub values: usize,
}

impl DocumentLimits {
    fn bounds(self) -> Bounds {
        Bounds { nodes: self.values, bytes: self.bytes }
    }

    fn check(self, text: &str) -> Result<(), Problem> {
        if text.len() <= self.bytes {
            return Ok(());
        }
        let message = format!("the document has {} bytes; the limit is {}", text.len(), self.bytes);
        Err(Problem::new("", "too_large", message))
    }
}

/// A parsed document, which knows the source position of every field.
#[derive(Debug)]
pub struct YamlDocument(Document<'static>);

impl YamlDocument {
    /// Parses a text.
    pub fn parse(text: &str, limits: DocumentLimits) -> Result<Self, Problem> {
        limits.check(text)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Document::yaml(text, 0, None, limits.bounds()).map(Self)
    }

    /// Parses the front matter of a text, and returns it with the text below.
    pub fn parse_front_matter(text: &str, limits: DocumentLimits) -> Result<(Self, String), Problem> {
        limits.check(text)?;
        let parts = split_front_matter(text.strip_prefix('\u{feff}').unwrap_or(text))?;
        let document = Document::yaml(&parts.front, parts.offset, None, limits.bounds())?;
        Ok((Self(document), parts.body))
    }

    /// Takes the value out of the document.
    pub fn take_value(&mut self) -> Value {
        std::mem::take(&mut self.0.value)
    }

    /// Returns the value as other readers of YAML see it: a version that is a number stays one.
    pub fn into_plain_value(self) -> Value {
        self.0.into_plain_value()
    }

    /// Takes the warnings about the text itself.
    pub fn take_warnings(&mut self) -> Vec<Problem> {
        std::mem::take(&mut self.0.warnings)
    }

    /// Sets the source positions of problems whose fields are paths of the document.
    pub fn locate(&self, problems: &mut [Problem]) {
        self.0.locate_plain(problems);
    }

    /// Sets the source positions of problems of the definition at a path such as `tools[2]`. Their fields are relative to
    /// that path before, and paths of the document after.
    pub fn locate_part(&self, path: &str, problems: &mut [Problem]) {
        self.0.locate_part(path, problems);
    }
}
