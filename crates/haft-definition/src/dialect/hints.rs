//! What people commonly get wrong in YAML, said in words that help.

use haft_core::problem::{Problem, excerpt};

/// Adds to a syntax error the slip that probably caused it: one in its own line, or in the next, of which it may be the
/// beginning that the parser did not like.
pub(super) fn explain(mut problem: Problem, text: &str) -> Problem {
    let (first, last) = problem.line.map_or((1, u32::MAX), |line| (line, line.saturating_add(1)));
    let mut lines = (1..=last).zip(text.lines()).filter(|(line, _)| *line >= first);
    let Some((line, hint)) = lines.find_map(|(line, text)| Some((line, slip_of(text)?))) else {
        return problem;
    };
    problem.message = format!("{}; hint: {hint}", problem.message);
    problem.line.get_or_insert(line);
    problem
}

fn slip_of(line: &str) -> Option<String> {
    tab(line).or_else(|| unquoted_braces(line)).or_else(|| unquoted_colon(line))
}

/// A second colon in a line would make a map of a value, which YAML refuses there.
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
    Some(format!("put a value with a colon in it in quotes, as in `{}: \"{shown}\"`", excerpt(key, 40)))
}

fn tab(line: &str) -> Option<String> {
    let indent = line.len() - line.trim_start().len();
    let tab = indent < line.len() && line.get(..indent)?.contains('\t');
    tab.then(|| "an indentation has a tab in it; YAML wants spaces".to_owned())
}

/// YAML takes `{` at the start of a value for a map.
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
    // What has quotes of its own would need more than a pair around it.
    let shown = if value.contains(['"', '\\']) { "{{…}}".to_owned() } else { excerpt(value, 60) };
    Some(format!("put `{{{{…}}}}` in quotes, as in `{lead}\"{shown}\"`"))
}
