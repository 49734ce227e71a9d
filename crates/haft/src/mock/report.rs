//! The report of a mock whose expectations were not met.

use std::cmp::Reverse;
use std::fmt::Write as _;

use haft_core::problem::excerpt;
use serde_json::Value;

use super::script::{ArgsMatcher, ExpectedCall, ReceivedCall, Script, Times};

/// The number of characters of a value that are shown.
const MAX_CHARACTERS: usize = 200;
/// The number of calls, and of differences between two values, that are shown.
const MAX_LINES: usize = 10;

/// Lists the unmet expectations and the unexpected calls; `None` if there are none.
pub(super) fn failure_report(script: &Script) -> Option<String> {
    let unmet: Vec<&ExpectedCall> =
        script.expected.iter().filter(|expected| !expected.times.is_met(expected.count)).collect();
    let unexpected: Vec<&ReceivedCall> = script.calls.iter().filter(|call| !call.is_expected).collect();
    if unmet.is_empty() && unexpected.is_empty() {
        return None;
    }
    let mut text = "MockTools: the calls do not match the expectations\n".to_owned();
    if !unmet.is_empty() {
        text.push_str("\nunmet expectations:\n");
        for expected in unmet {
            let (times, count) = (expected_times(expected), expected.count);
            line(&mut text, 1, &format!("{}: expected {times}, got {count}", title(expected)));
            line(&mut text, 2, &calls_of(script, &expected.tool));
        }
    }
    if !unexpected.is_empty() {
        text.push_str("\nunexpected calls:\n");
        for call in unexpected.iter().take(MAX_LINES) {
            line(&mut text, 1, &format!("`{}` with {}", call.tool, short(&call.args)));
            text.push_str(&indented(&explain_unexpected(script, call), 2));
        }
        more(&mut text, 1, unexpected.len());
    }
    Some(text)
}

/// Explains why a call matches none of the expectations.
pub(super) fn explain_unexpected(script: &Script, call: &ReceivedCall) -> String {
    let mut text = String::new();
    if let Some(rejection) = &call.rejection {
        line(&mut text, 0, &format!("rejected: {}", excerpt(rejection, MAX_CHARACTERS)));
        return text;
    }
    let of_tool: Vec<&ExpectedCall> = script
        .expected
        .iter()
        .filter(|expected| expected.tool == call.tool && !expected.is_rejected)
        .collect();
    if of_tool.is_empty() {
        line(&mut text, 0, &format!("no expectation for `{}`", call.tool));
        return text;
    }
    if let Some(exhausted) = of_tool.iter().find(|expected| expected.matches(&call.args)) {
        let times = expected_times(exhausted);
        line(&mut text, 0, &format!("too many calls of {}: expected {times}", title(exhausted)));
        return text;
    }
    let exact = of_tool.iter().filter_map(|expected| match &expected.arguments {
        ArgsMatcher::Equal(args) => Some((expected, Comparison::new(args, &call.args))),
        ArgsMatcher::Any | ArgsMatcher::Predicate(_) => None,
    });
    match exact.min_by_key(|(_, compared)| (Reverse(compared.equal_values), compared.differences.len())) {
        Some((expected, Comparison { differences, .. })) => {
            line(&mut text, 0, &format!("closest expectation: {}", title(expected)));
            for difference in differences.iter().take(MAX_LINES) {
                line(&mut text, 1, difference);
            }
            more(&mut text, 1, differences.len());
        }
        None => {
            for expected in of_tool.iter().take(MAX_LINES) {
                line(&mut text, 0, &format!("does not match {}", title(expected)));
            }
        }
    }
    text
}

fn title(expected: &ExpectedCall) -> String {
    let args = match &expected.arguments {
        ArgsMatcher::Any => "any arguments".to_owned(),
        ArgsMatcher::Equal(args) => short(args),
        ArgsMatcher::Predicate(_) => "arguments that match its predicate".to_owned(),
    };
    let rejected = if expected.is_rejected { ", rejected" } else { "" };
    let (file, line) = (expected.location.file(), expected.location.line());
    format!("`{}` with {args}{rejected} ({file}:{line})", expected.tool)
}

fn expected_times(expected: &ExpectedCall) -> String {
    match expected.times {
        Times::AtLeastOnce => "at least 1 call".to_owned(),
        Times::Exactly(0) => "no calls".to_owned(),
        Times::Exactly(1) => "1 call".to_owned(),
        Times::Exactly(count) => format!("{count} calls"),
        Times::Any => "any number of calls".to_owned(),
    }
}

fn calls_of(script: &Script, tool: &str) -> String {
    let calls: Vec<&ReceivedCall> = script.calls.iter().filter(|call| call.tool == tool).collect();
    if calls.is_empty() {
        return format!("`{tool}` was not called");
    }
    let mut text = format!("calls of `{tool}`:\n");
    for call in calls.iter().take(MAX_LINES) {
        line(&mut text, 1, &short(&call.args));
    }
    more(&mut text, 1, calls.len());
    text
}

/// The differences between two values, and the number of equal leaf values.
#[derive(Default)]
struct Comparison {
    differences: Vec<String>,
    equal_values: usize,
}

impl Comparison {
    fn new(expected: &Value, got: &Value) -> Self {
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
            (expected, got) if expected == got => self.equal_values += 1,
            (expected, got) => {
                let show = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), short);
                let path = if path.is_empty() { "the arguments" } else { path };
                self.differences.push(format!("{path}: expected {}, got {}", show(expected), show(got)));
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
