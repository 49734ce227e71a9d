//! The findings about one tool.

use haft_core::finding::{Finding, Severity};

use super::fold;

/// The maximum length of an excerpt, in characters.
pub(super) const MAX_EXCERPT: usize = 160;

/// Collects the findings about one tool.
pub(super) struct Report {
    tool: String,
    findings: Vec<Finding>,
}

impl Report {
    pub(super) fn new(tool: &str) -> Self {
        Self { tool: bounded(&escape(tool)), findings: Vec::new() }
    }

    /// Adds a finding. A rule is reported once per tool; a hard finding replaces a soft one of the same rule.
    pub(super) fn add(
        &mut self,
        (rule, severity): (&str, Severity),
        field: &str,
        excerpt: &str,
        message: &str,
    ) {
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

    pub(super) fn finish(mut self) -> Vec<Finding> {
        self.findings.sort_by(|a, b| (a.severity, &a.rule).cmp(&(b.severity, &b.rule)));
        self.findings
    }
}

pub(super) fn bounded(text: &str) -> String {
    if text.chars().nth(MAX_EXCERPT).is_none() {
        return text.to_owned();
    }
    let start: String = text.chars().take(MAX_EXCERPT).collect();
    format!("{start}…")
}

/// Escapes the characters that cannot be seen.
pub(super) fn escape(text: &str) -> String {
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
