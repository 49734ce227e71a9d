//! Finds tool calls that a model wrote as text.

use std::ops::Range;

use haft_core::hash;
use serde_json::{Map, Value};

use super::answer::{MAX_ARGUMENTS_BYTES, MAX_TOOL_CALLS};
use super::arguments::from_value;
use super::request::ToolCall;

/// How many places of a text are tried as the start of a call, and how many bytes are parsed in vain.
const MAX_STARTS: usize = 1000;
const MAX_WASTED_BYTES: usize = 4 * 1024 * 1024;

/// The keys of the name of a tool, and of its arguments.
const NAME_KEYS: [&str; 4] = ["tool_name", "name", "tool", "function"];
const ARGUMENT_KEYS: [&str; 5] = ["parameters", "arguments", "args", "input", "tool_input"];
/// Keys of results: an object with one of them and no arguments imitates a result and is no call.
const RESULT_KEYS: [&str; 5] = ["result", "tool_result", "output", "error", "content"];

/// What a text contains.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCalls {
    /// The calls, in order.
    pub calls: Vec<ToolCall>,
    /// The text without the calls.
    pub text: String,
}

/// Finds the calls of known tools in a text: objects such as `{"tool_name": "x", "parameters": {…}}`, alone, in a list,
/// under `tool_calls`, in a fence or in `<tool_call>` tags.
///
/// JSON that does not name a known tool stays in the text.
pub fn find_text_calls<'a>(text: &str, tools: impl IntoIterator<Item = &'a str>) -> TextCalls {
    let tools: Vec<&str> = tools.into_iter().collect();
    let mut found = Finder { text, tools: &tools, calls: Vec::new(), removed: Vec::new() };
    found.search();
    let Finder { calls, removed, .. } = found;
    let mut rest = String::with_capacity(text.len());
    let mut at = 0;
    for range in &removed {
        rest.push_str(text.get(at..range.start).unwrap_or_default());
        at = range.end;
    }
    rest.push_str(text.get(at..).unwrap_or_default());
    let text = if removed.is_empty() { rest } else { rest.trim().to_owned() };
    TextCalls { calls, text }
}

struct Finder<'t> {
    text: &'t str,
    tools: &'t [&'t str],
    calls: Vec<ToolCall>,
    removed: Vec<Range<usize>>,
}

impl Finder<'_> {
    fn search(&mut self) {
        let (mut at, mut wasted) = (0, 0);
        for _ in 0..MAX_STARTS {
            let rest = self.text.get(at..).unwrap_or_default();
            let Some(start) = rest.find(['{', '[']).map(|offset| at + offset) else { return };
            let json = self.text.get(start..).unwrap_or_default();
            let window = clip(json, MAX_ARGUMENTS_BYTES);
            let mut values = serde_json::Deserializer::from_str(window).into_iter::<Value>();
            let value = match values.next() {
                Some(Ok(value)) => value,
                Some(Err(error)) if wasted < MAX_WASTED_BYTES => {
                    wasted += consumed(window, &error);
                    at = start + 1;
                    continue;
                }
                _ => return,
            };
            let end = start + values.byte_offset();
            if self.take(&value) {
                let range = self.with_wrapping(start..end);
                at = range.end;
                self.removed.push(range);
            } else if value.is_object() || value.as_array().is_some_and(Vec::is_empty) {
                at = end;
            } else {
                // A list may be prose in brackets around a call.
                at = start + 1;
            }
            if self.calls.len() >= MAX_TOOL_CALLS {
                return;
            }
        }
    }

    /// Takes the calls of a value; `false` if it has none.
    fn take(&mut self, value: &Value) -> bool {
        let before = self.calls.len();
        match value {
            Value::Array(items) => {
                let calls: Option<Vec<_>> = items.iter().map(|item| self.read(item)).collect();
                for (name, arguments) in calls.unwrap_or_default() {
                    self.push(name, &arguments);
                }
            }
            Value::Object(map) => match map.get("tool_calls").or_else(|| map.get("calls")) {
                Some(list @ Value::Array(_)) => return self.take(list),
                _ => {
                    if let Some((name, arguments)) = self.read(value) {
                        self.push(name, &arguments);
                    }
                }
            },
            _ => {}
        }
        self.calls.len() > before
    }

    /// Reads one call of a known tool.
    fn read(&self, value: &Value) -> Option<(String, Value)> {
        let map = value.as_object()?;
        if let Some(Value::Object(function)) = map.get("function") {
            return self.read(&Value::Object(function.clone()));
        }
        let name = NAME_KEYS.iter().find_map(|key| map.get(*key)?.as_str())?;
        if !self.tools.contains(&name) {
            return None;
        }
        let arguments = ARGUMENT_KEYS.iter().find_map(|key| map.get(*key)).cloned();
        if arguments.is_none() && RESULT_KEYS.iter().any(|key| map.contains_key(*key)) {
            return None;
        }
        let arguments = arguments.unwrap_or_else(|| Value::Object(Map::new()));
        Some((name.to_owned(), arguments))
    }

    fn push(&mut self, name: String, arguments: &Value) {
        if self.calls.len() < MAX_TOOL_CALLS {
            // The same text gives the same ids, so that a repeated reading agrees with the first one.
            let digest = hash::of_bytes(format!("{}\n{}", self.calls.len(), self.text).as_bytes());
            let id = format!("call_{}", digest.get(..24).unwrap_or_default());
            self.calls.push(ToolCall { id, name, arguments: from_value(arguments), proof: None });
        }
    }

    /// Extends the range of a call by the fence or the tags around it.
    fn with_wrapping(&self, range: Range<usize>) -> Range<usize> {
        let before = self.text.get(..range.start).unwrap_or_default();
        let after = self.text.get(range.end..).unwrap_or_default();
        let inner_before = before.trim_end();
        let inner_after = after.trim_start();
        let skipped = after.len() - inner_after.len();
        let fence = inner_before.rfind("```").filter(|at| {
            let label = inner_before.get(at + 3..).unwrap_or_default();
            label.len() <= 20 && label.chars().all(|c| c.is_alphanumeric() || c == '_')
        });
        for (start, end) in [(fence, "```"), (tag_start(inner_before), "</tool_call>")] {
            if let Some(start) = start
                && inner_after.starts_with(end)
            {
                return start..range.end + skipped + end.len();
            }
        }
        range
    }
}

/// Returns how far the parser came.
fn consumed(window: &str, error: &serde_json::Error) -> usize {
    let lines = window.split_inclusive('\n').take(error.line().saturating_sub(1));
    lines.map(str::len).sum::<usize>() + error.column()
}

fn tag_start(before: &str) -> Option<usize> {
    before.ends_with("<tool_call>").then(|| before.len() - "<tool_call>".len())
}

/// Returns at most `limit` bytes of a text.
fn clip(text: &str, limit: usize) -> &str {
    text.get(..text.floor_char_boundary(limit)).unwrap_or(text)
}
