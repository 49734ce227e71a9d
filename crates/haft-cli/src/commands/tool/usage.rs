//! `haft tool usage`: shows who depends on a tool. Commands that affect them show a summary first.

use clap::Args;
use haft_api::usage::{RecentCaller, ResourceUsage, ToolUsage, UsingAgent, UsingRule, UsingToken, UsingTool};

use crate::client::{Request, tool_segment};
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
    context.output.show(&data, |output, usage: ToolUsage| {
        output.table(&["KIND", "NAME", "DETAIL"], tool_rows(&usage))?;
        output
            .note(&format!("\n{} tokens without an allow-list may call it, too", usage.unrestricted_tokens));
        Ok(())
    })
}

/// Prints a summary of the users of a tool, and returns whether it has any. Errors of the server are ignored, because the
/// command itself fails for the same reason.
pub(super) async fn notice(tool: &str, context: &Context) -> Result<bool, CliError> {
    let Ok(data) = context.request(request(tool)).await else { return Ok(false) };
    let usage: ToolUsage = view::read(&data)?;
    let summary = summary(&usage);
    if let Some(summary) = &summary {
        context.output.note(&format!("`{}` is in use: {summary}", usage.tool));
    }
    Ok(summary.is_some())
}

fn request(tool: &str) -> Request {
    Request::get(format!("/api/tools/{}/usage", tool_segment(tool)))
}

fn summary(usage: &ToolUsage) -> Option<String> {
    let names = |label: &str, names: Vec<&String>| {
        let shown: Vec<String> = names.iter().take(3).map(|name| format!("`{name}`")).collect();
        let more = if names.len() > 3 { format!(" and {} more", names.len() - 3) } else { String::new() };
        (!names.is_empty()).then(|| format!("{label} {}{more}", shown.join(", ")))
    };
    let parts = [
        names("called by", usage.callers.iter().map(|caller| &caller.name).collect()),
        names("in the allow-list of", usage.tokens.iter().map(|token| &token.name).collect()),
        names("in the policy rules", usage.policy_rules.iter().map(|rule| &rule.name).collect()),
        names("used by or replacement of", usage.tools.iter().map(|tool| &tool.tool).collect()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn row(kind: &str, name: &str, detail: String) -> Vec<String> {
    vec![kind.to_owned(), name.to_owned(), detail]
}

/// Returns the table rows of the users of a tool.
fn tool_rows(usage: &ToolUsage) -> Vec<Vec<String>> {
    let mut rows = caller_rows(&usage.callers, &usage.tokens, &usage.policy_rules);
    rows.extend(usage.tools.iter().map(using_tool));
    rows.extend(usage.agents.iter().map(using_agent));
    rows.extend(usage.mcp_views.iter().map(|path| row("mcp", path, String::new())));
    rows
}

/// Returns the table rows of the users of an agent, a pipeline or an artifact.
pub(crate) fn resource_rows(usage: &ResourceUsage) -> Vec<Vec<String>> {
    let mut rows = caller_rows(&usage.callers, &usage.tokens, &usage.policy_rules);
    rows.extend(usage.tools.iter().map(using_tool));
    rows.extend(usage.agents.iter().map(using_agent));
    rows
}

fn caller_rows(callers: &[RecentCaller], tokens: &[UsingToken], rules: &[UsingRule]) -> Vec<Vec<String>> {
    let callers = callers.iter().map(|caller| {
        let detail = format!("{} calls, last {}", caller.calls, view::moment(caller.last_called_at));
        row("caller", &caller.name, detail)
    });
    let tokens = tokens.iter().map(|token| row("token", &token.name, token.rules.join(", ")));
    let rules = rules.iter().map(|rule| {
        let detail = format!("{} ({})", rule.effect.as_str(), rule.scope);
        row("policy rule", &rule.name, detail)
    });
    callers.chain(tokens).chain(rules).collect()
}

fn using_agent(agent: &UsingAgent) -> Vec<String> {
    row("agent", &agent.agent, agent.rules.join(", "))
}

fn using_tool(tool: &UsingTool) -> Vec<String> {
    row("tool", &tool.tool, tool.field.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_summary_names_who_depends_on_the_tool() {
        let mut usage = json!({
            "tool": "x:new@1", "tokens": [], "unrestricted_tokens": 0, "policy_rules": [], "tools": [],
            "agents": [], "mcp_views": [], "callers": [], "counted_calls": 5000,
        });
        assert_eq!(summary(&view::read(&usage).unwrap()), None);
        let id = "018faf50-b7b6-7a01-9a05-a22a6e0af101";
        usage["callers"] = ["a", "b", "c", "d"]
            .map(|name| {
                let at = "2026-01-31T12:30:00Z";
                json!({"name": name, "token_id": null, "calls": 1, "last_called_at": at})
            })
            .into();
        usage["tokens"] = json!([{"id": id, "name": "ci", "role": "caller", "rules": ["new"]}]);
        usage["tools"] = json!([{"id": id, "tool": "x:old@1", "field": "replaced_by"}]);
        assert_eq!(
            summary(&view::read(&usage).unwrap()).unwrap(),
            "called by `a`, `b`, `c` and 1 more; in the allow-list of `ci`; used by or replacement of `x:old@1`"
        );
    }
}
