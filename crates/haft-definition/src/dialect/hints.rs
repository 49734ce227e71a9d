//! Hints for common mistakes in YAML.

use haft_core::problem::{Problem, excerpt};

/// How many lines before an error are searched for an open bracket.
const MAX_LINES_BACK: u32 = 50;

/// Adds a hint to a syntax error if its line, or the next one, contains a common mistake. An open bracket is reported
/// where it is: the parser notices it only lines later.
pub(super) fn explain(mut problem: Problem, text: &str) -> Problem {
    let is_other = !problem.message.contains("bracket");
    if let Some((line, column, bracket)) =
        problem.line.filter(|_| is_other).and_then(|line| open_bracket(text, line))
    {
        let message = format!("invalid YAML: unclosed bracket '{bracket}'");
        return Problem::new(problem.field, &problem.code, message).at(line, Some(column));
    }
    let (first, last) = problem.line.map_or((1, u32::MAX), |line| (line, line.saturating_add(1)));
    let mut lines = (1..=last).zip(text.lines()).filter(|(line, _)| *line >= first);
    let Some((line, hint)) = lines.find_map(|(line, text)| Some((line, hint_for_line(text)?))) else {
        return problem;
    };
    problem.message = format!("{}; hint: {hint}", problem.message);
    problem.line.get_or_insert(line);
    problem
}

/// Finds a value before the line of an error that starts with a bracket and is still open: its line, column and bracket.
fn open_bracket(text: &str, error: u32) -> Option<(u32, u32, char)> {
    let lines = (1..error).zip(text.lines()).skip(error.saturating_sub(MAX_LINES_BACK) as usize);
    let mut open = None;
    let mut depth = 0_usize;
    for (number, line) in lines {
        let start = line.find(": ").or_else(|| line.find("- ")).map_or(0, |at| at + 2);
        let value = line.get(start..).unwrap_or_default();
        let indent = value.len() - value.trim_start().len();
        if depth == 0 && value.trim_start().starts_with(['[', '{']) && !value.trim_start().starts_with("{{") {
            let column = line.get(..start + indent).unwrap_or_default().chars().count() + 1;
            open = value.trim_start().chars().next().map(|bracket| (number, column, bracket));
            depth = brackets(value, 0);
        } else if depth > 0 {
            depth = brackets(line, depth);
        }
    }
    let (line, column, bracket) = open.filter(|_| depth > 0)?;
    Some((line, u32::try_from(column).ok()?, bracket))
}

/// Returns the number of open brackets after a text, outside of quotes and comments.
fn brackets(text: &str, mut depth: usize) -> usize {
    let (mut quote, mut before) = (None, ' ');
    for c in text.chars() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') if before == ' ' => break,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        before = c;
    }
    depth
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
