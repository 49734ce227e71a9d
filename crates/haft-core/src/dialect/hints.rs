//! What people commonly get wrong in YAML, said in words that help.

use crate::problem::Problem;

/// Adds to a syntax error the slip that probably caused it.
pub(super) fn explain(mut problem: Problem, text: &str) -> Problem {
    let Some((line, hint)) = tab(text).or_else(|| unquoted_braces(text)) else { return problem };
    problem.message = format!("{}; hint: {hint}", problem.message);
    if problem.line.is_none() {
        problem.line = Some(line);
    }
    problem
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
