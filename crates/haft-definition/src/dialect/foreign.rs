//! Reads a document that is no definition of a tool, such as an API description, with the same care.

use serde_json::Value;

use super::load::Bounds;
use super::{json, load};
use haft_core::problem::Problem;

/// Reads a text: JSON where it starts like JSON, else YAML. Duplicate keys are refused, and so is nesting that no
/// reader could bear.
pub(crate) fn read_foreign(text: &str, bounds: Bounds) -> Result<Value, Problem> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) {
        return json::parse(text);
    }
    load::parse_within(text, bounds).map(|loaded| loaded.root.into_foreign_value())
}
