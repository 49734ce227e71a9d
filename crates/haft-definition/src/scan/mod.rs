//! Scans the tools of an MCP server for hidden text, instructions to the model, names that shadow other tools, and
//! arguments that ask for secrets.
//!
//! The scan is deterministic, reads only the given definitions, and takes time linear in their size. It reads the text as
//! the server sent it, before [`mcp_import`](crate::mcp_import) sanitizes it. A definition without findings is not proven
//! harmless: the scan knows phrases and characters, not intentions.

mod arguments;
mod encoded;
mod fields;
mod fold;
mod hidden;
mod names;
mod phrase_table;
mod phrases;

use haft_core::finding::{Finding, Severity};
use haft_core::mcp::ListedTool;

use fields::Fields;
use names::Others;

/// The maximum length of an excerpt, in characters.
const MAX_EXCERPT: usize = 160;
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

/// Collects the findings about one tool.
struct Report {
    tool: String,
    findings: Vec<Finding>,
}

impl Report {
    fn new(tool: &str) -> Self {
        Self { tool: bounded(&escape(tool)), findings: Vec::new() }
    }

    /// Adds a finding. A rule is reported once per tool; a hard finding replaces a soft one of the same rule.
    fn add(&mut self, (rule, severity): (&str, Severity), field: &str, excerpt: &str, message: &str) {
        let known = self.findings.iter_mut().find(|finding| finding.rule == rule);
        if known.as_ref().is_some_and(|finding| finding.severity <= severity) {
            return;
        }
        let finding = Finding {
            rule: rule.to_owned(),
            severity,
            tool: self.tool.clone(),
            field: bounded(&escape(field)),
            excerpt: bounded(&escape(excerpt)),
            message: message.to_owned(),
        };
        match known {
            Some(known) => *known = finding,
            None => self.findings.push(finding),
        }
    }

    fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by(|a, b| (a.severity, &a.rule).cmp(&(b.severity, &b.rule)));
        self.findings
    }
}

fn bounded(text: &str) -> String {
    if text.chars().nth(MAX_EXCERPT).is_none() {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_EXCERPT).collect();
    format!("{start}…")
}

/// Escapes the characters that cannot be seen.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        if fold::is_invisible(c) || (c.is_control() && c != '\n') {
            escaped.extend(c.escape_unicode());
        } else if c.is_whitespace() {
            escaped.push(' ');
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests;
