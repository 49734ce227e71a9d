//! Helpers for the tests of the dialects.

use super::document::Document;
use super::{Defaults, ParsedDefinition, read, read_value};
use crate::editor_schema::SchemaKind;
use crate::editor_schema::tests::violations;
use haft_core::catalog::FileForm;

/// Reads a text that must be valid and without warnings.
pub(super) fn good(text: &str, form: FileForm) -> ParsedDefinition {
    let reading = read(text, form, &Defaults::default()).unwrap();
    assert_eq!(reading.warnings, [], "{text}");
    // The schema for editors accepts it, too.
    let value = Document::parse(text, form).unwrap().value;
    assert_eq!(violations(SchemaKind::Tool, &value), [""; 0], "{text}");
    reading
}

/// Returns the canonical JSON of what a text defines.
pub(super) fn canonical(text: &str, form: FileForm) -> String {
    format!("{:#}", serde_json::to_value(&good(text, form).spec).unwrap())
}

/// Returns the errors of a text, or else its warnings, one per line.
pub(super) fn findings(text: &str, form: FileForm) -> String {
    let problems = match read(text, form, &Defaults::default()) {
        Ok(reading) => reading.warnings,
        Err(problems) => problems,
    };
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Reads a request body that must be valid.
pub(super) fn body(value: serde_json::Value) -> ParsedDefinition {
    read_value(value, &Defaults::default()).unwrap()
}

/// Returns the parsed value of a text; for a `.skill` file, the value of its front matter.
pub(crate) fn value_of(text: &str, form: FileForm) -> Option<serde_json::Value> {
    Document::parse(text, form).ok().map(|document| document.value)
}
