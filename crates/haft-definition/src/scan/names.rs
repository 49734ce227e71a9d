//! Names that shadow other tools, and descriptions that give orders about other tools.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use haft_core::finding::Severity;
use haft_core::mcp::ListedTool;
use regex::Regex;

use super::fold::{fold_name, is_invisible, look_alike};
use super::hidden::is_foreign_look_alike;
use super::report::Report;

/// How many bytes before the name of another tool are searched for an order.
const ORDER_DISTANCE: usize = 80;

/// Words that turn the name of another tool into an order.
const ORDERS: [&str; 16] = [
    "call ",
    "invoke ",
    "must ",
    "should ",
    "always ",
    "instead of ",
    "before ",
    "supersede",
    "intercept",
    "override",
    "replace",
    "rather than ",
    "prior to ",
    "whenever ",
    "modifies ",
    "after ",
];

/// Names of several words. Plain words are names of tools too, such as `search`, but also words of every text.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("[a-z0-9]+(?:[_-][a-z0-9]+)+").ok());

/// The names of the tools around the scanned one.
#[derive(Debug)]
pub(super) struct Others {
    /// The names of the same server, and how many of them look the same.
    own: HashMap<String, usize>,
    own_names: HashSet<String>,
    /// The names of other bundles, by their folded form.
    foreign: HashMap<String, String>,
}

impl Others {
    pub(super) fn new<'a>(listed: &[ListedTool], others: impl IntoIterator<Item = &'a str>) -> Self {
        let mut own: HashMap<String, usize> = HashMap::new();
        for tool in listed {
            *own.entry(fold_name(&tool.name)).or_default() += 1;
        }
        let own_names = listed.iter().map(|tool| tool.name.to_lowercase()).collect();
        let foreign = others.into_iter().map(|name| (fold_name(name), name.to_owned())).collect();
        Self { own, own_names, foreign }
    }
}

/// Reports names with hidden or look-alike characters, and names that another tool has too.
pub(super) fn scan(report: &mut Report, others: &Others, tool: &ListedTool) {
    let name = &tool.name;
    if name.chars().any(|c| is_invisible(c) || c.is_control()) {
        report.add(("names.hidden", Severity::Hard), "name", name, "a name with invisible characters");
    }
    let has_latin = name.chars().any(|c| c.is_ascii_alphabetic());
    if has_latin && name.chars().any(is_foreign_look_alike) {
        let seems: String = name.chars().map(look_alike).collect();
        let message = "a name with letters of another script that look like Latin letters";
        report.add(
            ("names.look_alike", Severity::Hard),
            "name",
            &format!("{name} looks like {seems}"),
            message,
        );
    }
    let folded = fold_name(name);
    if others.own.get(&folded).is_some_and(|count| *count > 1) {
        let message =
            "another tool of this server has a name that differs only in case or in look-alike letters";
        report.add(("names.similar", Severity::Soft), "name", name, message);
    }
    match others.foreign.get(&folded) {
        Some(other) if other == name => {
            let message = "a tool of another bundle has the same name";
            report.add(("names.same", Severity::Soft), "name", name, message);
        }
        Some(other) if other.to_lowercase() == name.to_lowercase() => {
            let message = "a tool of another bundle has a name that differs only in case";
            report.add(("names.shadow", Severity::Soft), "name", &format!("{name} and {other}"), message);
        }
        Some(other) => {
            let message = "a name that looks like the name of a tool of another bundle";
            report.add(("names.shadow", Severity::Hard), "name", &format!("{name} and {other}"), message);
        }
        None => {}
    }
}

/// Reports orders about tools of other bundles.
pub(super) fn scan_mentions(report: &mut Report, others: &Others, path: &str, folded: &str) {
    let Some(names) = NAMES.as_ref().filter(|_| !others.foreign.is_empty()) else { return };
    for name in names.find_iter(folded) {
        if others.own_names.contains(name.as_str()) || !others.foreign.contains_key(name.as_str()) {
            continue;
        }
        let mut from = name.start().saturating_sub(ORDER_DISTANCE);
        while !folded.is_char_boundary(from) {
            from += 1;
        }
        let before = folded.get(from..name.start()).unwrap_or_default();
        if ORDERS.iter().any(|order| before.contains(order)) {
            let message = "an order about a tool of another bundle";
            report.add(("names.order", Severity::Soft), path, &format!("{before}{}", name.as_str()), message);
        }
    }
}
