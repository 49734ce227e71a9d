//! `haft mcp-server changes`, `accept`, `reject`, `review` and `scan`: the review of the tools of MCP servers.

use std::path::Path;

use haft_api::mcp_server::{AcceptedTools, McpChangeList, McpFindingList, RejectedTools};
use haft_core::finding::Finding;
use haft_core::mcp::ListedTool;
use haft_definition::scan::Scanner;
use serde_json::{Value, json};

use super::mcp_server::path;
use crate::client::Request;
use crate::context::Context;
use crate::error::CliError;
use crate::output::Output;
use crate::{input, view};

pub(super) async fn changes(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("{}/changes", path(id)))).await?;
    context.output.show(&data, |output, list: McpChangeList| {
        for change in &list.changes {
            let state = if change.rejected {
                " (rejected)"
            } else if change.new {
                " (new)"
            } else {
                ""
            };
            output.line(&format!("{}{state}", change.name))?;
            for finding in &change.findings {
                output.line(&format!("  ! {}", describe(finding)))?;
            }
            let agreed = if change.new { Value::Null } else { json!(change.agreed) };
            diff(&agreed, &json!(change.offered)).iter().try_for_each(|line| output.line(line))?;
        }
        output.note(&match list.changes.len() {
            0 => format!("no changes: the tools of MCP server `{id}` are as they were accepted"),
            _ => format!("accept them with `haft mcp-server accept {id}`"),
        });
        Ok(())
    })
}

/// Returns the lines that differ between the accepted and the offered state of a tool.
fn diff(agreed: &Value, offered: &Value) -> Vec<String> {
    let side = |side: &Value| {
        let mut lines = Vec::new();
        if !side.is_null() {
            leaves("", side, &mut lines);
        }
        lines
    };
    let (before, after) = (side(agreed), side(offered));
    let removed = before.iter().filter(|leaf| !after.contains(leaf)).map(|leaf| ('-', leaf));
    let added = after.iter().filter(|leaf| !before.contains(leaf)).map(|leaf| ('+', leaf));
    let mut lines: Vec<_> = removed.chain(added).collect();
    // Both sides of a field are next to each other, the old one first.
    lines.sort_by(|(_, (a, _)), (_, (b, _))| a.cmp(b));
    let lines = lines.into_iter().flat_map(|(sign, (path, text))| {
        let text = format!("{path}: {text}");
        text.lines().map(|line| format!("  {sign} {line}")).collect::<Vec<_>>()
    });
    lines.collect()
}

/// Collects the dotted paths and values of everything that is not an object.
fn leaves(path: &str, value: &Value, into: &mut Vec<(String, String)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                leaves(&if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, value, into);
            }
        }
        other => into.push((path.to_owned(), view::readable(other))),
    }
}

pub(super) async fn accept(id: &str, tools: Vec<String>, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/accept", path(id)), selection(&tools))).await?;
    context.output.show(&data, |output, AcceptedTools { accepted }: AcceptedTools| {
        output.note(&format!("accepted: {}", names(&accepted)));
        Ok(())
    })
}

pub(super) async fn reject(id: &str, tools: Vec<String>, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/reject", path(id)), selection(&tools))).await?;
    context.output.show(&data, |output, RejectedTools { rejected }: RejectedTools| {
        output.note(&format!("rejected: {}", names(&rejected)));
        Ok(())
    })
}

fn selection(tools: &[String]) -> Value {
    if tools.is_empty() { json!({}) } else { json!({"tools": tools}) }
}

fn names(tools: &[String]) -> String {
    if tools.is_empty() { "nothing".to_owned() } else { tools.join(", ") }
}

/// Marks a server as reviewed.
pub(super) async fn review(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::post(format!("{}/review", path(id)), json!({}))).await?;
    context.output.data(&data, |output| {
        output.note(&format!("reviewed MCP server `{id}`; new tools wait for review from now on"));
        Ok(())
    })
}

/// Shows the findings about the tools of a server.
pub(super) async fn scan(id: &str, context: &Context) -> Result<(), CliError> {
    let data = context.request(Request::get(format!("{}/findings", path(id)))).await?;
    show_findings(&data, context)
}

/// Scans the tools of a file: a list of tools, or the result of `tools/list`.
pub(super) fn scan_file(file: &Path, context: &Context) -> Result<(), CliError> {
    let invalid =
        |reason: String| CliError::usage(format!("`{}` contains no list of tools: {reason}", file.display()));
    let document: Value =
        serde_json::from_str(&input::read_text(file)?).map_err(|error| invalid(error.to_string()))?;
    let listed = document.get("tools").unwrap_or(&document);
    let listed = listed
        .as_array()
        .ok_or_else(|| invalid("expected an array, or an object with `tools`".to_owned()))?;
    let tools: Vec<ListedTool> = listed.iter().map(read_tool).collect();
    let mut scanner = Scanner::new(&tools, []);
    let mut findings = Vec::new();
    if let Some(instructions) = document.get("instructions").and_then(Value::as_str) {
        findings.extend(scanner.instructions(instructions));
    }
    for tool in &tools {
        findings.extend(scanner.tool(tool));
    }
    findings.sort_by_key(|finding| finding.severity);
    let list = McpFindingList { total: findings.len(), findings };
    show_findings(&json!(list), context)
}

/// Reads a tool as MCP writes it.
fn read_tool(tool: &Value) -> ListedTool {
    let text = |key: &str| tool.get(key).and_then(Value::as_str).map(str::to_owned);
    ListedTool {
        name: text("name").unwrap_or_default(),
        title: text("title"),
        description: text("description").unwrap_or_default(),
        input_schema: tool.get("inputSchema").cloned().unwrap_or_default(),
        output_schema: tool.get("outputSchema").cloned(),
        ..ListedTool::default()
    }
}

fn show_findings(data: &Value, context: &Context) -> Result<(), CliError> {
    context.output.show(data, |output: &Output, list: McpFindingList| {
        for finding in &list.findings {
            let subject = if finding.tool.is_empty() { "instructions" } else { &finding.tool };
            output.line(&format!("{subject}: {}", describe(finding)))?;
        }
        if list.findings.is_empty() {
            output.note("nothing found");
        }
        Ok(())
    })
}

fn describe(finding: &Finding) -> String {
    let Finding { rule, severity, field, excerpt, message, .. } = finding;
    let severity = view::word(severity);
    let excerpt = excerpt.replace('\n', " ");
    format!("{severity} {rule} in {field}: {message}: {excerpt:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_shown_as_a_diff() {
        let agreed =
            json!({"description": "Echo a text", "input_schema": {"type": "object", "required": ["text"]}});
        let offered = json!({
            "description": "Echo a text\nand send it away",
            "input_schema": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["text"]},
        });
        insta::assert_snapshot!(diff(&agreed, &offered).join("\n"), @r"
        - description: Echo a text
        + description: Echo a text
        + and send it away
        + input_schema.properties.to.type: string
        ");
        assert!(diff(&json!({"a": 1}), &json!({"a": 1})).is_empty());
        assert_eq!(diff(&Value::Null, &json!({"a": 1})), ["  + a: 1"]);
    }
}
