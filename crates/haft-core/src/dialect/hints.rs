//! What people commonly get wrong in YAML, said in words that help.

use super::control;
use crate::problem::Problem;

/// More warnings of one kind help nobody.
const MOST: usize = 10;

/// Adds to a syntax error the slip that probably caused it.
pub(super) fn explain(mut problem: Problem, text: &str) -> Problem {
    let Some((line, hint)) = tab(text).or_else(|| unquoted_braces(text)) else { return problem };
    problem.message = format!("{}; hint: {hint}", problem.message);
    if problem.line.is_none() {
        problem.line = Some(line);
    }
    problem
}

/// Finds values that are cut short by a `#` which was hardly meant as a comment: `Channel (without #)`.
pub(super) fn cut_values(text: &str) -> Vec<Problem> {
    let lines: Vec<&str> = text.lines().collect();
    let inside = control::block_scalars(&lines);
    let mut problems = Vec::new();
    for ((number, line), inside) in (1u32..).zip(&lines).zip(inside) {
        let Some((_, value)) = line.split_once(": ").filter(|_| !inside) else { continue };
        let plain = value.trim_start().starts_with(|c: char| c.is_alphanumeric());
        let Some(at) = value.find(" #").filter(|_| plain && !line.trim_start().starts_with('#')) else {
            continue;
        };
        // A comment is set off by a space, or is a row of signs.
        if value
            .get(at + 2..)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphanumeric() || ")]}'\".,;".contains(c)))
        {
            let message = "a `#` after a space starts a comment, so the value ends before it; put the value in quotes if that is not meant";
            problems.push(Problem::new("", "comment_in_value", message).at(number, None));
        }
        if problems.len() == MOST {
            break;
        }
    }
    problems
}

fn numbered(text: &str) -> impl Iterator<Item = (u32, &str)> {
    (1..).zip(text.lines())
}

fn tab(text: &str) -> Option<(u32, String)> {
    let (line, _) = numbered(text).find(|(_, line)| {
        let indent = line.len() - line.trim_start().len();
        line.get(..indent).is_some_and(|indent| indent.contains('\t')) && indent < line.len()
    })?;
    Some((line, "an indentation has a tab in it; YAML wants spaces".to_owned()))
}

fn unquoted_braces(text: &str) -> Option<(u32, String)> {
    let (line, _) = numbered(text).find(|(_, line)| {
        let value = line
            .split_once(": ")
            .map_or_else(|| line.trim_start().strip_prefix("- "), |(_, value)| Some(value));
        value.is_some_and(|value| value.trim_start().starts_with("{{"))
    })?;
    Some((line, "put `{{…}}` in quotes, such as \"{{name}}\"".to_owned()))
}
