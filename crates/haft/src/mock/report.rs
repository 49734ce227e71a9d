//! What was not as a test expected, in words.

use std::cmp::Reverse;
use std::fmt::Write as _;

use haft_core::problem::excerpt;
use serde_json::Value;

use super::expected::{Arguments, Call, Expected, Script, Times};

/// The most characters of a value that are shown.
const MAX_CHARACTERS: usize = 200;
/// The most calls, and the most differences between two values, that are shown.
const MAX_LINES: usize = 10;

/// Says which expectations were not met, and which calls came that nobody expected.
pub(super) fn of(script: &Script) -> Option<String> {
    let unmet: Vec<&Expected> =
        script.expected.iter().filter(|expected| !expected.times.is_met(expected.count)).collect();
    let unexpected: Vec<&Call> = script.calls.iter().filter(|call| !call.is_expected).collect();
    if unmet.is_empty() && unexpected.is_empty() {
        return None;
    }
    let mut text = "MockTools: the calls were not as expected\n".to_owned();
    if !unmet.is_empty() {
        text.push_str("\nnot met:\n");
        for expected in unmet {
            line(&mut text, 1, &format!("{}: {}", title(expected), counted(expected)));
            line(&mut text, 2, &calls_of(script, &expected.tool));
        }
    }
    if !unexpected.is_empty() {
        text.push_str("\nnot expected:\n");
        for call in unexpected.iter().take(MAX_LINES) {
            line(&mut text, 1, &format!("`{}` with {}", call.tool, short(&call.args)));
            text.push_str(&indented(&self::unexpected(script, call), 2));
        }
        more(&mut text, 1, unexpected.len());
    }
    Some(text)
}

/// Says why a call fits none of the expectations.
pub(super) fn unexpected(script: &Script, call: &Call) -> String {
    let mut text = String::new();
    if let Some(refusal) = &call.refusal {
        line(&mut text, 0, &format!("it was refused: {}", excerpt(refusal, MAX_CHARACTERS)));
        return text;
    }
    let of_tool: Vec<&Expected> = script
        .expected
        .iter()
        .filter(|expected| expected.tool == call.tool && !expected.is_refused)
        .collect();
    if of_tool.is_empty() {
        line(&mut text, 0, &format!("nothing is expected of `{}`", call.tool));
        return text;
    }
    if let Some(full) = of_tool.iter().find(|expected| expected.fits(&call.args)) {
        line(&mut text, 0, &format!("one too many for {}: expected {}", title(full), wanted(full)));
        return text;
    }
    let exact = of_tool.iter().filter_map(|expected| match &expected.arguments {
        Arguments::Equal(args) => Some((expected, Comparison::of(args, &call.args))),
        Arguments::Any | Arguments::Like(_) => None,
    });
    match exact.min_by_key(|(_, found)| (Reverse(found.agreements), found.differences.len())) {
        Some((expected, Comparison { differences, .. })) => {
            line(&mut text, 0, &format!("nearest is {}", title(expected)));
            for difference in differences.iter().take(MAX_LINES) {
                line(&mut text, 1, difference);
            }
            more(&mut text, 1, differences.len());
        }
        None => {
            for expected in of_tool.iter().take(MAX_LINES) {
                line(&mut text, 0, &format!("does not fit {}", title(expected)));
            }
        }
    }
    text
}

fn title(expected: &Expected) -> String {
    let args = match &expected.arguments {
        Arguments::Any => "whatever arguments".to_owned(),
        Arguments::Equal(args) => short(args),
        Arguments::Like(_) => "arguments that its function says yes to".to_owned(),
    };
    let refused = if expected.is_refused { ", refused" } else { "" };
    format!("`{}` with {args}{refused} ({}:{})", expected.tool, expected.place.file(), expected.place.line())
}

fn counted(expected: &Expected) -> String {
    format!("expected {}, got {}", wanted(expected), expected.count)
}

fn wanted(expected: &Expected) -> String {
    match expected.times {
        Times::OnceOrMore => "1 call or more".to_owned(),
        Times::Exactly(0) => "no call".to_owned(),
        Times::Exactly(1) => "1 call".to_owned(),
        Times::Exactly(exactly) => format!("{exactly} calls"),
        Times::Any => "any number of calls".to_owned(),
    }
}

fn calls_of(script: &Script, tool: &str) -> String {
    let calls: Vec<&Call> = script.calls.iter().filter(|call| call.tool == tool).collect();
    if calls.is_empty() {
        return format!("`{tool}` was not called at all");
    }
    let mut text = format!("calls of `{tool}`:\n");
    for call in calls.iter().take(MAX_LINES) {
        line(&mut text, 1, &short(&call.args));
    }
    more(&mut text, 1, calls.len());
    text
}

/// Where two values differ, by path, and in how many places they do not.
#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
    agreements: usize,
}

impl Comparison {
    fn of(expected: &Value, got: &Value) -> Self {
        let mut comparison = Self::default();
        comparison.compare("", Some(expected), Some(got));
        comparison
    }

    fn compare(&mut self, path: &str, expected: Option<&Value>, got: Option<&Value>) {
        match (expected, got) {
            (Some(Value::Object(expected)), Some(Value::Object(got))) => {
                let more = got.keys().filter(|name| !expected.contains_key(*name));
                for name in expected.keys().chain(more) {
                    let dot = if path.is_empty() { "" } else { "." };
                    self.compare(&format!("{path}{dot}{name}"), expected.get(name), got.get(name));
                }
            }
            (Some(Value::Array(expected)), Some(Value::Array(got))) => {
                for index in 0..expected.len().max(got.len()) {
                    self.compare(&format!("{path}[{index}]"), expected.get(index), got.get(index));
                }
            }
            (expected, got) if expected == got => self.agreements += 1,
            (expected, got) => {
                let say = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), short);
                let place = if path.is_empty() { "the arguments" } else { path };
                self.differences.push(format!("{place}: expected {}, got {}", say(expected), say(got)));
            }
        }
    }
}

fn short(value: &Value) -> String {
    excerpt(&value.to_string(), MAX_CHARACTERS)
}

fn line(text: &mut String, level: usize, content: &str) {
    text.push_str(&indented(content, level));
}

fn indented(content: &str, level: usize) -> String {
    content.lines().fold(String::new(), |mut text, line| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:1$}{line}", "", 2 * level);
        text
    })
}

fn more(text: &mut String, level: usize, count: usize) {
    if count > MAX_LINES {
        line(text, level, &format!("… and {} more", count - MAX_LINES));
    }
}
