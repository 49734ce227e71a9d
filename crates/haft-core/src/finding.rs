//! What a scan of the tools of an MCP server found.

use serde::{Deserialize, Serialize};

/// How a finding is treated. Hard findings come first in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ScanSeverity))]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The tool waits for review.
    Hard,
    /// A warning.
    Soft,
}

/// A suspicious part of a tool definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = ScanFinding))]
pub struct Finding {
    /// The id of the rule, which stays the same between versions.
    #[cfg_attr(feature = "openapi", schema(example = "instructions.conceal"))]
    pub rule: String,
    /// How it is treated.
    pub severity: Severity,
    /// The name of the tool on its server; empty for the instructions of the server.
    #[cfg_attr(feature = "openapi", schema(example = "add"))]
    pub tool: String,
    /// The field of the tool.
    #[cfg_attr(feature = "openapi", schema(example = "description"))]
    pub field: String,
    /// The suspicious text; hidden characters are escaped.
    pub excerpt: String,
    /// What was found, in one sentence.
    pub message: String,
}

impl Finding {
    /// Returns whether a tool with these findings waits for review.
    pub fn any_hard(findings: &[Self]) -> bool {
        findings.iter().any(|finding| finding.severity == Severity::Hard)
    }
}
