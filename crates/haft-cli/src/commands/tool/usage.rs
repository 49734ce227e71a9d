//! `haft tool usage`: shows who depends on a tool. Commands that affect them show a summary first.

use clap::Args;
use serde_json::Value;

use crate::client::{Request, segment};
use crate::context::Context;
use crate::error::CliError;
use crate::view;

/// Show who depends on a tool
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Tool: name, bundle:name, either with @version, or id
    tool: String,
}

/// Runs the command.
pub(crate) async fn run(arguments: Arguments, context: &Context) -> Result<(), CliError> {
    let data = context.tool_request(&arguments.tool, request(&arguments.tool)).await?;
    context.output.data(&data, |output| {
        output.table(&["KIND", "NAME", "DETAIL"], rows(&data))?;
        output.note(&format!(
            "\n{} tokens without an allow-list may call it, too",
            view::text(&data, "unrestricted_tokens")
        ));
        Ok(())
    })
}

/// Prints who depends on a tool, if anybody does; returns whether somebody does. An error is left to the command itself,
/// which fails for the same reason.
pub(super) async fn notice(tool: &str, context: &Context) -> bool {
    let Ok(usage) = context.request(request(tool)).await else { return false };
    let summary = summary(&usage);
    if let Some(summary) = &summary {
        context.output.note(&format!("`{}` is in use: {summary}", view::text(&usage, "tool")));
    }
    summary.is_some()
}

fn request(tool: &str) -> Request {
    Request::get(format!("/api/tools/{}/usage", segment(tool)))
}

fn summary(usage: &Value) -> Option<String> {
    let names = |key: &str, label: &str| {
        let list = view::list(usage, key);
        let names: Vec<String> = list.iter().take(3).map(name).collect();
        let more = if list.len() > 3 { format!(" and {} more", list.len() - 3) } else { String::new() };
        (!list.is_empty()).then(|| format!("{label} {}{more}", names.join(", ")))
    };
    let parts = [
        names("callers", "called by"),
        names("tokens", "in the allow-list of"),
        names("policy_rules", "in the policy rules"),
        names("tools", "replacement of"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn name(item: &Value) -> String {
    let name = view::text(item, "name");
    format!("`{}`", if name.is_empty() { view::text(item, "tool") } else { name })
}

fn rows(usage: &Value) -> Vec<Vec<String>> {
    let strings = |value: &Value, key: &str| {
        let texts: Vec<String> = view::list(value, key).iter().map(view::readable).collect();
        texts.join(", ")
    };
    let row = |kind: &str, name: String, detail: String| vec![kind.to_owned(), name, detail];
    let mut rows = Vec::new();
    for caller in view::list(usage, "callers") {
        let detail =
            format!("{} calls, last {}", view::text(caller, "calls"), view::time(caller, "last_called_at"));
        rows.push(row("caller", view::text(caller, "name"), detail));
    }
    for token in view::list(usage, "tokens") {
        rows.push(row("token", view::text(token, "name"), strings(token, "rules")));
    }
    for rule in view::list(usage, "policy_rules") {
        let detail = format!("{} ({})", view::text(rule, "effect"), view::text(rule, "scope"));
        rows.push(row("policy rule", view::text(rule, "name"), detail));
    }
    for tool in view::list(usage, "tools") {
        rows.push(row("tool", view::text(tool, "tool"), view::text(tool, "field")));
    }
    for path in view::list(usage, "mcp_views") {
        rows.push(row("mcp", view::readable(path), String::new()));
    }
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_summary_names_who_depends_on_the_tool() {
        assert_eq!(summary(&json!({"callers": [], "tokens": []})), None);
        let usage = json!({
            "callers": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "d"}],
            "tokens": [{"name": "ci"}],
            "tools": [{"tool": "x:old@1"}],
        });
        assert_eq!(
            summary(&usage).unwrap(),
            "called by `a`, `b`, `c` and 1 more; in the allow-list of `ci`; replacement of `x:old@1`"
        );
    }
}
