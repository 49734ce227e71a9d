//! Checks names and descriptions, by which models choose tools.

use super::{CheckReport, MAX_DESCRIPTION, MAX_ENTRIES, MAX_LABEL};
use haft_core::spec::ToolSpec;

/// Words that do not describe what a tool does.
const VAGUE_WORDS: [&str; 26] = [
    "tool", "tools", "my", "test", "tests", "testing", "foo", "bar", "baz", "do", "stuff", "thing", "things",
    "func", "function", "helper", "util", "utils", "misc", "new", "untitled", "example", "sample", "temp",
    "tmp", "demo",
];

/// The minimum length of a useful description, in characters.
const MIN_DESCRIPTION: usize = 10;

pub(super) fn check(spec: &ToolSpec, checked: &mut CheckReport) {
    name(spec, checked);
    description(spec, checked);
    for (field, text) in [("display_name", &spec.display_name), ("category", &spec.category)] {
        label(text, field, checked);
    }
    for (index, tag) in spec.tags.iter().enumerate().take(MAX_ENTRIES) {
        if tag.trim().is_empty() {
            checked.error(format!("tags[{index}]"), "invalid_value", "is empty");
        }
        label(tag, &format!("tags[{index}]"), checked);
    }
    for (field, count) in [("tags", spec.tags.len()), ("renderers", spec.renderers.len())] {
        if count > MAX_ENTRIES {
            checked.error(field, "too_large", format!("has {count} entries; the limit is {MAX_ENTRIES}"));
        }
    }
}

fn label(text: &str, field: &str, checked: &mut CheckReport) {
    let length = text.chars().count();
    if length > MAX_LABEL {
        checked.error(field, "too_large", format!("has {length} characters; the limit is {MAX_LABEL}"));
    }
    if text.chars().any(char::is_control) {
        checked.error(field, "invalid_value", "contains a control character; expected a single line of text");
    }
}

fn name(spec: &ToolSpec, checked: &mut CheckReport) {
    let name = spec.name.as_str().to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).peekable();
    let is_vague =
        words.peek().is_none() || words.all(|word| VAGUE_WORDS.contains(&word) || word.chars().count() == 1);
    if is_vague {
        checked.warn(
            "name",
            "vague_name",
            format!("`{name}` is vague, and models choose tools by name; name the action, such as `create_github_issue`"),
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
            format!("has {bytes} bytes; the limit is {MAX_DESCRIPTION}"),
        );
    } else if text.is_empty() {
        checked.warn(
            "description",
            "missing_description",
            "is empty; models use it to decide when to call the tool",
        );
    } else if text.chars().count() < MIN_DESCRIPTION || is_vague(text) || same_as_name(spec, text) {
        checked.warn(
            "description",
            "vague_description",
            "is vague; describe what the tool does and when to use it",
        );
    }
}

fn is_vague(text: &str) -> bool {
    text.to_lowercase().split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).all(|word| {
        VAGUE_WORDS.contains(&word)
            || matches!(word, "a" | "an" | "the" | "this" | "is" | "does" | "some" | "that")
    })
}

fn same_as_name(spec: &ToolSpec, text: &str) -> bool {
    let letters =
        |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    letters(text) == letters(spec.name.as_str())
}
