//! Names and descriptions: a model chooses a tool by them alone.

use super::{CheckReport, MAX_DESCRIPTION, MAX_ENTRIES, MAX_WORDS};
use haft_core::spec::ToolSpec;

/// Words that say nothing about what a tool does.
const VAGUE: [&str; 26] = [
    "tool", "tools", "my", "test", "tests", "testing", "foo", "bar", "baz", "do", "stuff", "thing", "things",
    "func", "function", "helper", "util", "utils", "misc", "new", "untitled", "example", "sample", "temp",
    "tmp", "demo",
];

/// Shorter descriptions cannot say what a tool does and when to use it.
const SHORTEST_DESCRIPTION: usize = 10;

pub(super) fn check(spec: &ToolSpec, checked: &mut CheckReport) {
    name(spec, checked);
    description(spec, checked);
    for (field, text) in [("display_name", &spec.display_name), ("category", &spec.category)] {
        label(text, field, checked);
    }
    for (index, tag) in spec.tags.iter().enumerate().take(MAX_ENTRIES) {
        if tag.trim().is_empty() {
            checked.error(format!("tags.{index}"), "invalid_value", "is empty");
        }
        label(tag, &format!("tags.{index}"), checked);
    }
    for (field, count) in [("tags", spec.tags.len()), ("renderers", spec.renderers.len())] {
        if count > MAX_ENTRIES {
            checked.error(
                field,
                "too_large",
                format!("has {count} entries; at most {MAX_ENTRIES} are allowed"),
            );
        }
    }
}

fn label(text: &str, field: &str, checked: &mut CheckReport) {
    let length = text.chars().count();
    if length > MAX_WORDS {
        checked.error(
            field,
            "too_large",
            format!("has {length} characters; at most {MAX_WORDS} are allowed"),
        );
    }
    if text.chars().any(char::is_control) {
        checked.error(field, "invalid_value", "contains a control character; it is one line of text");
    }
}

fn name(spec: &ToolSpec, checked: &mut CheckReport) {
    let name = spec.name.as_str().to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).peekable();
    let nothing =
        words.peek().is_none() || words.all(|word| VAGUE.contains(&word) || word.chars().count() == 1);
    if nothing {
        checked.warn(
            "name",
            "vague_name",
            format!("`{name}` does not say what the tool does; a model chooses by it. Name the action, such as `create_github_issue`"),
        );
    }
}

fn description(spec: &ToolSpec, checked: &mut CheckReport) {
    let text = spec.description.trim();
    if spec.description.len() > MAX_DESCRIPTION {
        let bytes = spec.description.len();
        checked.error(
            "description",
            "too_large",
            format!("has {bytes} bytes; at most {MAX_DESCRIPTION} are allowed"),
        );
    } else if text.is_empty() {
        checked.warn(
            "description",
            "missing_description",
            "is empty; a model decides by it when to call the tool",
        );
    } else if text.chars().count() < SHORTEST_DESCRIPTION || vague(text) || same_as_name(spec, text) {
        checked.warn(
            "description",
            "vague_description",
            "says little; tell what the tool does and when to use it",
        );
    }
}

fn vague(text: &str) -> bool {
    text.to_lowercase().split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).all(|word| {
        VAGUE.contains(&word) || matches!(word, "a" | "an" | "the" | "this" | "is" | "does" | "some" | "that")
    })
}

fn same_as_name(spec: &ToolSpec, text: &str) -> bool {
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    letters(text) == letters(spec.name.as_str())
}
