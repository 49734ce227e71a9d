//! Tools in API responses: fills in the fields of the haft-api types that depend on the registry and the caller.

use haft_api::tool::ToolView;
use haft_api::tool_summary::ToolSummary;
use haft_core::problem::excerpt;
use haft_core::token::Role;
use haft_core::tool::Usage;
use haft_platform::viewer::Viewer;
use haft_runtime::registry::{Entry, Snapshot};

/// Shows a tool to a viewer.
pub(crate) fn tool(entry: &Entry, viewer: &Viewer, snapshot: &Snapshot) -> ToolView {
    ToolView {
        ready: entry.ready(),
        error: entry.fault(),
        usage: visible_usage(entry, viewer),
        callable: viewer.may_call(snapshot, entry),
        ..ToolView::from(&entry.tool)
    }
}

/// Shows the summary of a tool to a viewer.
pub(crate) fn summary(
    entry: &Entry,
    viewer: &Viewer,
    snapshot: &Snapshot,
    warning_count: usize,
) -> ToolSummary {
    ToolSummary {
        ready: entry.ready(),
        error: entry.fault().map(|fault| excerpt(&fault, ToolSummary::MAX_TEXT)),
        usage: Some(visible_usage(entry, viewer)).filter(|usage| *usage != Usage::default()),
        callable: viewer.may_call(snapshot, entry),
        warning_count,
        ..ToolSummary::from(&entry.tool)
    }
}

/// Returns how often a tool was called. The usage of a global tool counts the calls of all tenants.
fn visible_usage(entry: &Entry, viewer: &Viewer) -> Usage {
    let principal = viewer.principal();
    let is_platform_admin = principal.platform && principal.role == Role::Admin;
    if entry.tool.tenant.is_global() && !is_platform_admin { Usage::default() } else { entry.usage() }
}
