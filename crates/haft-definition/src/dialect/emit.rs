//! Writes values as YAML in block style; parsing it returns exactly the same values.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// The maximum length of a simple key, in bytes; longer keys are written as `? key`, because YAML limits simple keys.
const MAX_SHORT_KEY: usize = 500;

/// Writes the entries of a map, one below the other.
pub(super) fn document(map: &Map<String, Value>) -> String {
    let mut out = String::new();
    for (key, value) in map {
        entry(&mut out, key, value, 0);
    }
    out
}

fn entry(out: &mut String, key: &str, value: &Value, indent: usize) {
    let key = scalar(key);
    if key.len() > MAX_SHORT_KEY {
        out.push_str("? ");
        out.push_str(&key);
        out.push('\n');
        pad(out, indent);
    } else {
        out.push_str(&key);
    }
    out.push(':');
    after(out, value, indent);
}

/// Writes what follows `key:` or `-`, with the end of the line.
fn after(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push('\n');
            for (key, value) in map {
                pad(out, indent + 2);
                entry(out, key, value, indent + 2);
            }
        }
        Value::Array(items) if !items.is_empty() && !items.iter().all(Value::is_number) => {
            out.push('\n');
            for value in items {
                pad(out, indent + 2);
                item(out, value, indent + 2);
            }
        }
        Value::String(text) if fits_block(text) => block(out, text, indent + 2),
        value => {
            out.push(' ');
            out.push_str(&short(value));
            out.push('\n');
        }
    }
}

fn item(out: &mut String, value: &Value, indent: usize) {
    out.push('-');
    let Value::Object(map) = value else { return after(out, value, indent) };
    if map.is_empty() {
        return after(out, value, indent);
    }
    let mut lead = " ".to_owned();
    for (key, value) in map {
        out.push_str(&lead);
        entry(out, key, value, indent + 2);
        lead = " ".repeat(indent + 2);
    }
}

fn pad(out: &mut String, indent: usize) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// Formats a value on one line.
fn short(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(short).collect();
            format!("[{}]", items.join(", "))
        }
        // Null, booleans, numbers and the empty map are the same as in JSON.
        other => other.to_string(),
    }
}

fn scalar(text: &str) -> String {
    if fits_plain(text) {
        text.to_owned()
    } else if text.contains(['"', '\\']) && text.chars().all(printable) {
        format!("'{}'", text.replace('\'', "''"))
    } else {
        quoted(text)
    }
}

/// Returns whether a text needs no quotes: it starts with a letter, `/` or `$` (or is a duration such as `30s`), is a
/// string to every YAML reader, and contains nothing that ends a plain scalar.
fn fits_plain(text: &str) -> bool {
    const WORDS: [&str; 13] =
        ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity", "none"];
    let allowed = |c: char| c.is_alphanumeric() || " _-./(),'+=@;&%$!?*<>~:#{}|^".contains(c);
    let starts_well = |c: char| c.is_alphabetic() || c == '/' || c == '$';
    (text.starts_with(starts_well) || is_duration(text))
        && text.chars().all(allowed)
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && !WORDS.contains(&text.to_lowercase().as_str())
}

fn is_duration(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit());
    unit.len() < text.len() && matches!(unit, "ms" | "s" | "m" | "h")
}

fn printable(c: char) -> bool {
    !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if printable(c) => out.push(c),
            // All remaining characters are below U+10000. Writing to a string cannot fail.
            c => drop(write!(out, "\\u{:04x}", u32::from(c))),
        }
    }
    out.push('"');
    out
}

/// Returns whether a literal block preserves the text exactly.
fn fits_block(text: &str) -> bool {
    text.contains('\n')
        && !text.starts_with(char::is_whitespace)
        && !text.ends_with("\n\n")
        && text.chars().all(|c| printable(c) || c == '\n' || c == '\t')
        && text.lines().all(|line| line.is_empty() || !line.trim().is_empty())
}

fn block(out: &mut String, text: &str, indent: usize) {
    out.push_str(if text.ends_with('\n') { " |\n" } else { " |-\n" });
    for line in text.lines() {
        if !line.is_empty() {
            pad(out, indent);
            out.push_str(line);
        }
        out.push('\n');
    }
}
