//! Markers: conditions on the machine and the interpreter, such as `python_version < "3.12"`.

use super::RequirementError;
use crate::problem::excerpt;

/// The variables of markers (PEP 508), and the words between conditions.
const WORDS: [&str; 16] = [
    "os_name",
    "sys_platform",
    "platform_machine",
    "platform_python_implementation",
    "platform_release",
    "platform_system",
    "platform_version",
    "python_version",
    "python_full_version",
    "implementation_name",
    "implementation_version",
    "extra",
    "and",
    "or",
    "in",
    "not",
];

/// Returns a marker with one space between its parts. Installers parse it again; this rejects everything that is not
/// made of known words, strings, comparisons and parentheses.
pub(super) fn normalize(text: &str) -> Result<String, RequirementError> {
    let invalid = || RequirementError::Marker(excerpt(text.trim(), 60));
    let mut parts: Vec<String> = Vec::new();
    let (mut rest, mut depth) = (text.trim(), 0_usize);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' => rest.get(1..).and_then(|inner| inner.find(first)).ok_or_else(invalid)? + 2,
            '(' | ')' => 1,
            '<' | '>' | '=' | '!' | '~' => {
                rest.find(|c| !matches!(c, '<' | '>' | '=' | '!' | '~')).ok_or_else(invalid)?
            }
            _ => rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len()),
        };
        let (part, after) = rest.split_at_checked(length).ok_or_else(invalid)?;
        if !is_part(part) {
            return Err(invalid());
        }
        depth = match part {
            "(" => depth + 1,
            ")" => depth.checked_sub(1).ok_or_else(invalid)?,
            _ => depth,
        };
        parts.push(part.to_owned());
        rest = after.trim_start();
    }
    let compares = parts.iter().any(|part| part == "in" || part.starts_with(['<', '>', '=', '!', '~']));
    if depth > 0 || !compares { Err(invalid()) } else { Ok(parts.join(" ")) }
}

fn is_part(part: &str) -> bool {
    let in_string = |c: char| c.is_ascii_alphanumeric() || " ._-+*,#:()/".contains(c);
    match part.chars().next() {
        Some(quote @ ('\'' | '"')) => part.trim_matches(quote).chars().all(in_string),
        Some('(' | ')') => true,
        Some('<' | '>' | '=' | '!' | '~') => super::OPERATORS.contains(&part),
        _ => WORDS.contains(&part),
    }
}
