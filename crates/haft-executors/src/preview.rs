//! Texts that show a person what a call will run. Secrets are masked before anything is rendered.

use std::collections::BTreeMap;

use haft_core::secret::{MASK, Secret};
use serde_json::Value;

/// Returns a mask for each secret, to render templates with.
pub(crate) fn masked<'a>(names: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, Secret> {
    names.into_iter().map(|name| (name, Secret::new(MASK.to_owned()))).collect()
}

/// Returns a command line as one would type it.
pub(crate) fn command_line<'a>(argv: impl IntoIterator<Item = &'a str>) -> String {
    argv.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// Returns variables as assignments, one per line.
pub(crate) fn assignments<'a>(variables: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut text = String::new();
    for (name, value) in variables {
        text.extend([name, "=", &quote(&value), "\n"]);
    }
    text
}

/// Returns an argument as a script reads it from its variable.
pub(crate) fn variable_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn quote(text: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '@' | '+' | ',' | '=' | ':' | '*')
    };
    let is_safe = !text.is_empty() && text.chars().all(is_plain);
    if is_safe { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_lines_and_variables_are_quoted() {
        assert_eq!(command_line(["ls", "-l", "a b", "it's", ""]), r"ls -l 'a b' 'it'\''s' ''");
        let variables = [("NAME", "Ada".to_owned()), ("TEXT", "a\nb".to_owned())];
        assert_eq!(assignments(variables), "NAME=Ada\nTEXT='a\nb'\n");
    }
}
