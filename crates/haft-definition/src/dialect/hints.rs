//! Hints for common mistakes in YAML.

use haft_core::problem::{Problem, excerpt};

/// Adds a hint to a syntax error if its line, or the next one, contains a common mistake.
pub(super) fn explain(mut problem: Problem, text: &str) -> Problem {
    let (first, last) = problem.line.map_or((1, u32::MAX), |line| (line, line.saturating_add(1)));
    let mut lines = (1..=last).zip(text.lines()).filter(|(line, _)| *line >= first);
    let Some((line, hint)) = lines.find_map(|(line, text)| Some((line, hint_for_line(text)?))) else {
        return problem;
    };
    problem.message = format!("{}; hint: {hint}", problem.message);
    problem.line.get_or_insert(line);
    problem
}

fn hint_for_line(line: &str) -> Option<String> {
    tab(line).or_else(|| unquoted_braces(line)).or_else(|| unquoted_colon(line))
}

/// A second colon would make the value a map, which is invalid there.
fn unquoted_colon(line: &str) -> Option<String> {
    let line = line.trim();
    let (key, value) = line.strip_prefix("- ").unwrap_or(line).split_once(": ")?;
    let value = value.trim();
    let is_plain = !value.starts_with(['"', '\'', '{', '[', '|', '>', '&', '*', '!', '#']);
    let has_colon = value.contains(": ") || value.ends_with(':');
    if !is_plain || !has_colon {
        return None;
    }
    let shown = if value.contains(['"', '\\']) { "…".to_owned() } else { excerpt(value, 60) };
    Some(format!("quote a value that contains a colon: `{}: \"{shown}\"`", excerpt(key, 40)))
}

fn tab(line: &str) -> Option<String> {
    let indent = line.len() - line.trim_start().len();
    let tab = indent < line.len() && line.get(..indent)?.contains('\t');
    tab.then(|| "the indentation contains a tab; use spaces".to_owned())
}

/// YAML reads `{` at the start of a value as a map.
fn unquoted_braces(line: &str) -> Option<String> {
    let line = line.trim();
    let (lead, value) = match line.split_once(": ") {
        Some((key, value)) => (format!("{}: ", excerpt(key, 40)), value),
        None => ("- ".to_owned(), line.strip_prefix("- ")?),
    };
    let value = value.trim();
    if !value.starts_with("{{") {
        return None;
    }
    // A value that contains quotes would need escapes.
    let shown = if value.contains(['"', '\\']) { "{{…}}".to_owned() } else { excerpt(value, 60) };
    Some(format!("quote `{{{{…}}}}`: `{lead}\"{shown}\"`"))
}
