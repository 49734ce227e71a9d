//! Reads the `examples` of a tool: saved arguments, and the value that they should return.

use std::collections::HashSet;

use haft_core::example::{MAX_EXAMPLES, ToolExample};
use haft_definition::dialect::Fields;

/// Takes the examples, sorted by name.
pub(super) fn take(fields: &mut Fields<'_>) -> Vec<ToolExample> {
    let entries = fields.nested_list("examples").unwrap_or_default();
    if entries.len() > MAX_EXAMPLES {
        let message = format!("has {} examples; the limit is {MAX_EXAMPLES}", entries.len());
        fields.error("examples", "too_large", message);
        return Vec::new();
    }
    let mut names = HashSet::new();
    let mut examples: Vec<ToolExample> = entries.into_iter().filter_map(example).collect();
    for example in &examples {
        if !names.insert(example.name.clone()) {
            let message = format!("duplicate example `{}`; rename or remove one of them", example.name);
            fields.error("examples", "duplicate_example", message);
        }
    }
    examples.sort_by(|one, other| one.name.cmp(&other.name));
    examples
}

fn example(mut fields: Fields<'_>) -> Option<ToolExample> {
    let name = fields.required_text("name", "the name of the example");
    let description = fields.text("description").unwrap_or_default();
    let args = fields.object("args").unwrap_or_default();
    let expect = fields.raw("expect");
    let example = ToolExample { name: name?, description, args, expect };
    match example.check() {
        Ok(()) => Some(example),
        Err(error) => {
            fields.error("name", "invalid_example", error.to_string());
            None
        }
    }
}
