//! Helpers to read values from responses.

use serde_json::Value;

/// Returns the text at a dotted path; empty if it is missing or null.
pub(crate) fn text(value: &Value, path: &str) -> String {
    match path.split('.').try_fold(value, |value, key| value.get(key)) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Returns the array under a key.
pub(crate) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Returns whether a flag is set.
pub(crate) fn is(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

/// Returns a time without fraction: `2026-01-31 12:30:00`.
pub(crate) fn time(value: &Value, path: &str) -> String {
    let text = text(value, path);
    let seconds = text.get(..19).unwrap_or(&text);
    seconds.replace('T', " ")
}

/// Returns the first line of a text, at most `limit` characters of it.
pub(crate) fn first_line(text: &str, limit: usize) -> String {
    haft_core::problem::excerpt(text.trim().lines().next().unwrap_or_default(), limit)
}

/// Returns `bundle:name@version` of a tool.
pub(crate) fn qualified(tool: &Value) -> String {
    let name = format!("{}:{}", text(tool, "bundle"), text(tool, "name"));
    match text(tool, "version") {
        // An unreadable file has no version.
        version if version.is_empty() => name,
        version => format!("{name}@{version}"),
    }
}

/// Formats a problem with its line and field.
pub(crate) fn problem(problem: &Value) -> String {
    let line = problem.get("line").map(|line| format!("line {line}: ")).unwrap_or_default();
    match text(problem, "field") {
        field if field.is_empty() => format!("{line}{}", text(problem, "message")),
        field => format!("{line}`{field}`: {}", text(problem, "message")),
    }
}

/// Formats a value: a string as it is, everything else as JSON.
pub(crate) fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => format!("{other:#}"),
    }
}
