//! Changes a configuration in YAML, line by line, so that comments and everything else in it stay as they are. The section
//! must be in block style, as goose writes it.

use std::ops::Range;

use serde_json::Value;

/// A section without entries.
const EMPTY: &str = "{}";

/// Returns the text with the entry, which replaces an earlier one of the same name.
pub(super) fn put(text: &str, section: &str, name: &str, entry: &Value) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let found = find(&lines, section)?;
    let (at, indent) = if let Some(servers) = &found {
        let earlier = entry_range(&lines, servers, name);
        if let Some(line) = lines.get_mut(servers.start - 1).filter(|line| line.ends_with(EMPTY)) {
            *line = format!("{section}:");
        }
        let at = earlier.as_ref().map_or(servers.start, |range| range.start);
        drop(earlier.map(|range| lines.drain(range)));
        (at, servers.indent)
    } else {
        lines.push(format!("{section}:"));
        (lines.len(), 2)
    };
    let mut block = vec![format!("{}{name}:", " ".repeat(indent))];
    write(entry, indent + 2, &mut block);
    drop(lines.splice(at..at, block));
    Ok(joined(&lines))
}

/// Returns the text of an entry.
pub(super) fn get(text: &str, section: &str, name: &str) -> Result<Option<String>, String> {
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(servers) = find(&lines, section)? else { return Ok(None) };
    let entry = entry_range(&lines, &servers, name).and_then(|range| lines.get(range));
    Ok(entry.map(|lines| lines.join("\n")))
}

/// Returns the text without the entry.
pub(super) fn remove(text: &str, section: &str, name: &str) -> Result<String, String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let Some(servers) = find(&lines, section)? else { return Ok(text.to_owned()) };
    if let Some(range) = entry_range(&lines, &servers, name) {
        let is_only = range == (servers.start..servers.end);
        drop(lines.drain(range));
        // A key without a value would be null, which goose rejects.
        if let Some(line) = lines.get_mut(servers.start - 1).filter(|_| is_only) {
            *line = format!("{section}: {EMPTY}");
        }
    }
    Ok(joined(&lines))
}

/// The entries of a section.
struct Section {
    /// The line of the first entry.
    start: usize,
    /// The line behind the last entry.
    end: usize,
    /// The indentation of the names.
    indent: usize,
}

fn find(lines: &[String], section: &str) -> Result<Option<Section>, String> {
    let key = format!("{section}:");
    let mut places = lines.iter().enumerate().filter(|(_, line)| line.starts_with(&key));
    let Some((at, line)) = places.next() else { return Ok(None) };
    if places.next().is_some() {
        return Err(format!("`{section}` is there twice"));
    }
    let rest = line.get(key.len()..).unwrap_or_default();
    let rest = rest.split(" #").next().unwrap_or_default().trim();
    if !rest.is_empty() && rest != EMPTY {
        return Err(format!("`{section}` is not in block style, with one entry below the other"));
    }
    let inside = |line: &&String| line.trim().is_empty() || line.starts_with([' ', '#']);
    let end = at + 1 + lines.iter().skip(at + 1).take_while(inside).count();
    let content = |line: &&String| !line.trim().is_empty() && !line.trim_start().starts_with('#');
    let used = lines.get(at + 1..end).unwrap_or_default();
    let Some(first) = used.iter().find(content) else {
        return Ok(Some(Section { start: at + 1, end: at + 1, indent: 2 }));
    };
    let end = at + 1 + used.iter().rposition(|line| content(&line)).map_or(0, |last| last + 1);
    Ok(Some(Section { start: at + 1, end, indent: indentation(first) }))
}

fn entry_range(lines: &[String], section: &Section, name: &str) -> Option<Range<usize>> {
    let key = format!("{}{name}:", " ".repeat(section.indent));
    let inside = lines.get(section.start..section.end)?;
    let start = inside.iter().position(|line| line.trim_end() == key)?;
    let next = |line: &String| !line.trim().is_empty() && indentation(line) <= section.indent;
    let length = inside.iter().skip(start + 1).position(next).unwrap_or(inside.len() - start - 1);
    Some(section.start + start..section.start + start + 1 + length)
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start_matches(' ').len()
}

/// Writes the members of an object. Texts and lists are in JSON, which is YAML, too.
fn write(entry: &Value, indent: usize, block: &mut Vec<String>) {
    for (key, value) in entry.as_object().into_iter().flatten() {
        let margin = " ".repeat(indent);
        match value {
            Value::Object(map) if !map.is_empty() => {
                block.push(format!("{margin}{key}:"));
                write(value, indent + 2, block);
            }
            _ => block.push(format!("{margin}{key}: {value}")),
        }
    }
}

fn joined(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const BEFORE: &str =
        "# mine\nextensions:\n  developer:\n    enabled: true\n    type: builtin\n\nGOOSE_MODEL: x\n";

    #[test]
    fn comments_and_other_entries_stay() {
        let entry = json!({"type": "streamable_http", "uri": "http://a/mcp", "headers": {"Authorization": "Bearer haft_1"}});
        let after = put(BEFORE, "extensions", "haft", &entry).unwrap();
        assert_eq!(
            after,
            "# mine\nextensions:\n  haft:\n    type: \"streamable_http\"\n    uri: \"http://a/mcp\"\n    headers:\n      \
             Authorization: \"Bearer haft_1\"\n  developer:\n    enabled: true\n    type: builtin\n\nGOOSE_MODEL: x\n"
        );
        assert!(get(&after, "extensions", "haft").unwrap().unwrap().contains("haft_1"));
        let replaced = put(&after, "extensions", "haft", &json!({"uri": "http://b/mcp"})).unwrap();
        assert!(replaced.contains("http://b/mcp") && !replaced.contains("http://a/mcp"));
        assert_eq!(remove(&replaced, "extensions", "haft").unwrap(), BEFORE);
    }

    #[test]
    fn a_missing_section_is_added_and_an_empty_one_stays_valid() {
        let after = put("GOOSE_MODEL: x\n", "extensions", "haft", &json!({"uri": "u"})).unwrap();
        assert_eq!(after, "GOOSE_MODEL: x\nextensions:\n  haft:\n    uri: \"u\"\n");
        let removed = remove(&after, "extensions", "haft").unwrap();
        assert_eq!(removed, "GOOSE_MODEL: x\nextensions: {}\n");
        assert_eq!(put(&removed, "extensions", "haft", &json!({"uri": "u"})).unwrap(), after);
        assert_eq!(
            put("", "extensions", "haft", &json!({"uri": "u"})).unwrap(),
            "extensions:\n  haft:\n    uri: \"u\"\n"
        );
    }

    #[test]
    fn another_style_is_rejected() {
        for before in [
            "extensions: {a: {type: builtin}}\n",
            "extensions:\n  a:\n    b: 1\nextensions:\n  c:\n    d: 1\n",
        ] {
            assert!(put(before, "extensions", "haft", &json!({})).is_err(), "{before}");
        }
    }
}
