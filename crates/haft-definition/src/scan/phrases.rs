//! Instructions to the model that have no place in the definition of a tool.
//!
//! The patterns match text folded by [`fold`](super::fold::fold): lower case, and one space or line break between words.

use std::sync::LazyLock;

use haft_core::finding::Severity::{self, Hard, Soft};
use regex::{Regex, RegexSet};

use super::phrase_table::{FRAGMENTS, RULES};
use super::report::Report;

/// How many bytes around a match are shown.
const CONTEXT: usize = 30;
/// How many bytes before a match are searched for a word that turns it into its opposite.
const NEGATION_DISTANCE: usize = 40;

/// Words before an action that deny it.
const NEGATIONS: [&str; 12] = [
    "not ", "never ", "n't ", "cannot ", "block", "deny", "denies", "reject", "prevent", "refuse", "exclud",
    "without ",
];

/// Words before a quoted phrase that describe it.
const DESCRIPTIONS: [&str; 12] = [
    "detect",
    "such as",
    "e.g.",
    "for example",
    "block",
    "prevent",
    "scan",
    "flag",
    "phrases like",
    "looks for",
    "check for",
    "attempts",
];

/// A phrase that a rule looks for.
pub(super) struct Phrase {
    pub(super) rule: &'static str,
    pub(super) severity: Severity,
    /// A regular expression; `{name}` is replaced by the fragment with that name, and a space matches a line break too.
    pub(super) pattern: &'static str,
    /// Whether a negation before the match cancels it.
    pub(super) negatable: bool,
}

struct Rules {
    all: RegexSet,
    each: Vec<(&'static Phrase, Regex)>,
}

static COMPILED: LazyLock<Rules> = LazyLock::new(|| {
    let each: Vec<_> =
        RULES.iter().filter_map(|phrase| Some((phrase, Regex::new(&expand(phrase.pattern)).ok()?))).collect();
    let all =
        RegexSet::new(each.iter().map(|(_, regex)| regex.as_str())).unwrap_or_else(|_| RegexSet::empty());
    Rules { all, each }
});

fn expand(pattern: &str) -> String {
    let mut expanded = pattern.to_owned();
    for (name, fragment) in FRAGMENTS {
        expanded = expanded.replace(&format!("{{{name}}}"), fragment);
    }
    format!("(?s-m){}", expanded.replace(r"\b", r"(?-u:\b)").replace(' ', r"[ \n]"))
}

/// Returns what a rule found.
pub(super) fn message(rule: &str) -> &'static str {
    match rule {
        "instructions.conceal" => "an instruction to hide something from the user",
        "instructions.override" => "an instruction to ignore other instructions",
        "instructions.role" => "an instruction to take another role",
        "instructions.tag" => "a text that pretends to be an instruction of the system",
        "instructions.emphasis" => "a tag that gives weight to instructions",
        "instructions.read_secret" => "an instruction to read secrets and pass them on",
        "instructions.secret_path" => "the path of a file with secrets",
        "instructions.send" => "an instruction to send data to another address",
        "instructions.context" => "an instruction to pass the conversation or secrets on",
        "instructions.other_tool" => "an instruction that changes how other tools are used",
        "instructions.order" => "an instruction to prefer this tool or to call it first",
        "instructions.unconfirmed" => "an instruction to act without confirmation",
        "instructions.after_review" => "a change of behavior after the review",
        _ => "several weak signs of instructions to the model in one text",
    }
}

/// Reports the phrases in a folded text.
pub(super) fn scan(report: &mut Report, path: &str, folded: &str) {
    let mut weak: Vec<&str> = Vec::new();
    let mut first = String::new();
    for (phrase, found) in matches(folded) {
        let excerpt = around(folded, found.0, found.1);
        let severity = if is_described(folded, found.0) { Soft } else { phrase.severity };
        if severity == Soft && !weak.contains(&phrase.rule) {
            weak.push(phrase.rule);
            first.push_str(&excerpt);
            first.push_str(" … ");
        }
        report.add((phrase.rule, severity), path, &excerpt, message(phrase.rule));
    }
    // Emphasis is harmless alone, and so is each of the others.
    if weak.len() > 1 && weak.contains(&"instructions.emphasis") || weak.len() > 2 {
        report.add(("instructions.combined", Hard), path, &first, message("instructions.combined"));
    }
}

/// Returns whether a folded text contains any phrase.
pub(super) fn is_suspicious(folded: &str) -> bool {
    matches(folded).next().is_some()
}

fn matches(folded: &str) -> impl Iterator<Item = (&'static Phrase, (usize, usize))> {
    let rules = &*COMPILED;
    rules.all.matches(folded).into_iter().filter_map(move |index| {
        let (phrase, regex) = rules.each.get(index)?;
        let mut found = regex.find_iter(folded).take(20).map(|found| (found.start(), found.end()));
        let found = found.find(|(start, _)| !phrase.negatable || !is_negated(folded, *start))?;
        Some((*phrase, found))
    })
}

fn before(text: &str, position: usize, distance: usize) -> &str {
    let mut start = position.saturating_sub(distance);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    let before = text.get(start..position).unwrap_or_default();
    // Another sentence says nothing about this one.
    before.rsplit(['\n', ';']).next().unwrap_or_default().rsplit(". ").next().unwrap_or_default()
}

fn is_negated(text: &str, position: usize) -> bool {
    let before = before(text, position, NEGATION_DISTANCE);
    NEGATIONS.iter().any(|word| before.contains(word))
}

/// Returns whether a phrase is quoted by a text that describes it.
fn is_described(text: &str, position: usize) -> bool {
    let before = before(text, position, 2 * NEGATION_DISTANCE);
    let is_quoted =
        before.trim_end_matches(|c: char| c.is_alphabetic() || c == ' ').ends_with(['"', '\'', '(']);
    is_quoted && DESCRIPTIONS.iter().any(|word| before.contains(word))
}

fn around(text: &str, start: usize, end: usize) -> String {
    let (mut from, mut to) = (start.saturating_sub(CONTEXT), end.saturating_add(CONTEXT).min(text.len()));
    while !text.is_char_boundary(from) {
        from += 1;
    }
    while !text.is_char_boundary(to) {
        to -= 1;
    }
    text.get(from..to).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        for phrase in RULES {
            Regex::new(&expand(phrase.pattern)).unwrap_or_else(|error| panic!("{}: {error}", phrase.rule));
        }
        assert_eq!(COMPILED.all.len(), RULES.len());
    }
}
