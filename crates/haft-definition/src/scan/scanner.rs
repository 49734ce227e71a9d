//! Applies all rules to the tools of one server.

use haft_core::finding::{Finding, Severity};
use haft_core::mcp::ListedTool;

use super::fields::{self, Fields};
use super::names::{self, Others};
use super::report::Report;
use super::{arguments, encoded, fold, hidden, phrases};

/// The maximum number of bytes that are scanned per server.
const MAX_SERVER: usize = 8 << 20;

/// Scans the tools of one server.
#[derive(Debug)]
pub struct Scanner {
    others: Others,
    budget: usize,
}

impl Scanner {
    /// Creates a scanner of these tools. `others` are the names of the other tools of the tenant.
    pub fn new<'a>(listed: &[ListedTool], others: impl IntoIterator<Item = &'a str>) -> Self {
        Self { others: Others::new(listed, others), budget: MAX_SERVER }
    }

    /// Returns the findings about a tool, hard ones first; at most one per rule.
    pub fn tool(&mut self, tool: &ListedTool) -> Vec<Finding> {
        let mut report = Report::new(&tool.name);
        let Fields { texts, arguments, incomplete } = Fields::of_tool(tool, &mut self.budget);
        if incomplete {
            let message = "the definition is too large to be scanned completely";
            report.add(("scan.incomplete", Severity::Hard), "", &tool.name, message);
        }
        names::scan(&mut report, &self.others, tool);
        arguments::scan(&mut report, &arguments);
        for text in &texts {
            scan_text(&mut report, &self.others, &text.path, &text.value);
        }
        report.finish()
    }

    /// Returns the findings about the instructions of the server.
    pub fn instructions(&self, text: &str) -> Vec<Finding> {
        let mut report = Report::new("");
        let bounded: String = text.chars().take(fields::MAX_TEXT).collect();
        if bounded.len() < text.len() {
            let message = "the instructions are too large to be scanned completely";
            report.add(("scan.incomplete", Severity::Hard), "instructions", "", message);
        }
        scan_text(&mut report, &self.others, "instructions", &bounded);
        report.finish()
    }
}

fn scan_text(report: &mut Report, others: &Others, path: &str, text: &str) {
    hidden::scan(report, path, text);
    encoded::scan(report, path, text);
    let folded = fold::fold(text);
    phrases::scan(report, path, &folded);
    names::scan_mentions(report, others, path, &folded);
}
