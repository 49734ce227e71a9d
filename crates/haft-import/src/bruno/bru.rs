//! Parses a `.bru` file into its blocks.
//!
//! A block is `name {`, lines, and `}` in the first column. Dictionaries have `key: value` lines, `~` disables one; texts
//! are indented by two spaces. `vars:secret [a, b]` is a list.

use haft_core::problem::Problem;

/// The maximum number of blocks and of lines of a file.
const MAX_BLOCKS: usize = 100;
const MAX_LINES: usize = 100_000;

/// A block of a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block<'t> {
    /// Such as `body:json`.
    pub(super) name: &'t str,
    lines: Vec<&'t str>,
}

/// A line of a dictionary.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) is_disabled: bool,
}

impl Block<'_> {
    /// Returns the text, without the indentation.
    pub(super) fn text(&self) -> String {
        let plain: Vec<&str> =
            self.lines.iter().map(|line| line.strip_prefix("  ").unwrap_or(line)).collect();
        plain.join("\n").trim().to_owned()
    }

    /// Returns the entries of a dictionary.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        let mut lines = self.lines.iter();
        while let Some(line) = lines.next() {
            let line = line.trim();
            let (line, is_disabled) = line.strip_prefix('~').map_or((line, false), |line| (line, true));
            let (name, value) = if let Some(quoted) = line.strip_prefix('"') {
                let Some((name, rest)) = quoted.split_once('"') else { continue };
                let Some(value) = rest.trim_start().strip_prefix(':') else { continue };
                (name, value)
            } else {
                let Some((name, value)) = line.split_once(':') else { continue };
                (name, value)
            };
            let mut value = value.trim().to_owned();
            // A value in triple quotes spans lines.
            if let Some(start) = value.strip_prefix("'''") {
                let mut parts = vec![start.to_owned()];
                if !start.ends_with("'''") {
                    for line in lines.by_ref() {
                        parts.push(line.trim().to_owned());
                        if line.trim_end().ends_with("'''") {
                            break;
                        }
                    }
                }
                let joined = parts.join("\n");
                joined.trim_end_matches("'''").trim().clone_into(&mut value);
            }
            entries.push(Entry { name: name.trim().to_owned(), value, is_disabled });
        }
        entries
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, name: &str) -> String {
        let found = self.entries().into_iter().find(|entry| entry.name == name && !entry.is_disabled);
        found.map(|entry| entry.value).unwrap_or_default()
    }

    /// Returns the names of a list, without those that are disabled.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.lines.iter().map(|line| line.trim().trim_end_matches(','));
        names.filter(|name| !name.is_empty() && !name.starts_with('~')).map(str::to_owned).collect()
    }
}

/// Parses a file. Text outside of blocks is ignored.
pub(super) fn parse<'t>(path: &str, text: &'t str) -> Result<Vec<Block<'t>>, Problem> {
    let mut blocks: Vec<Block<'t>> = Vec::new();
    let mut lines = text.lines().take(MAX_LINES);
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        let list = line.strip_suffix('[').map(|name| (name, "]"));
        let Some((name, end)) = line.strip_suffix('{').map(|name| (name, "}")).or(list) else { continue };
        let name = name.trim();
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b":-_".contains(&byte));
        if !is_name {
            continue;
        }
        let mut block = Block { name, lines: Vec::new() };
        let mut is_closed = false;
        for line in lines.by_ref() {
            if line.trim_end() == end {
                is_closed = true;
                break;
            }
            block.lines.push(line);
        }
        if !is_closed {
            let message = format!("the block `{name}` is not closed by `{end}` in the first column");
            return Err(Problem::new(path, "syntax", message));
        }
        if blocks.len() >= MAX_BLOCKS {
            return Err(Problem::new(path, "too_large", format!("the limit is {MAX_BLOCKS} blocks")));
        }
        blocks.push(block);
    }
    Ok(blocks)
}
