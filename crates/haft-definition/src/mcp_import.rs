//! Converts the tools of an MCP server to definitions.

use std::collections::HashSet;

use serde_json::{Value, json};

use crate::export::distinct_name;
use haft_core::finding::Finding;
use haft_core::implementation::{Implementation, Mcp};
use haft_core::mcp::{ListedTool, MAX_TOOLS, McpServer};
use haft_core::name::ToolName;
use haft_core::problem::{Problem, excerpt};
use haft_core::schema::Schema;
use haft_core::schema::normalize::normalize;
use haft_core::schema::walk::includes_type;
use haft_core::spec::ToolSpec;

/// The tag of tools that their server marks as read-only.
pub const READ_ONLY: &str = "read-only";
/// The maximum length of a description, in characters.
const MAX_DESCRIPTION: usize = 10_000;

/// An imported tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTool {
    /// The definition.
    pub spec: ToolSpec,
    /// The digest of the listed tool.
    pub digest: String,
    /// What a scan found in the listed tool.
    pub findings: Vec<Finding>,
}

/// The result of importing the tools of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpImport {
    /// The imported tools, in the order of the server.
    pub tools: Vec<ImportedTool>,
    /// The rejected tools, by name, with the reason.
    pub refused: Vec<(String, Problem)>,
}

/// Converts the tools of a server. An invalid tool does not affect the others. `scan` returns the findings about a valid
/// tool.
pub fn import(
    server: &McpServer,
    listed: &[ListedTool],
    mut scan: impl FnMut(&ListedTool) -> Vec<Finding>,
) -> McpImport {
    let mut import = McpImport::default();
    let mut seen: HashSet<&str> = HashSet::new();
    let mut names: HashSet<ToolName> = HashSet::new();
    for tool in listed {
        let mut refuse = |code: &str, message: String| {
            import.refused.push((excerpt(&tool.name, 100), Problem::new("name", code, message)));
        };
        if import.tools.len() >= MAX_TOOLS {
            refuse("too_many", format!("the server lists more than {MAX_TOOLS} tools, which is the limit"));
            break;
        }
        if !seen.insert(&tool.name) {
            refuse("duplicate", "duplicate name: the server lists another tool with this name".to_owned());
            continue;
        }
        let name = match name(&server.prefix, &tool.name, &names) {
            Ok(name) => name,
            Err(problem) => {
                import.refused.push((excerpt(&tool.name, 100), problem));
                continue;
            }
        };
        match spec(server, tool, name.clone()) {
            Ok(spec) => {
                names.insert(name);
                import.tools.push(ImportedTool { spec, digest: tool.digest(), findings: scan(tool) });
            }
            Err(problem) => import.refused.push((excerpt(&tool.name, 100), problem)),
        }
    }
    import
}

/// Returns a valid name: the name on the server if it is valid, otherwise a similar name with a hash.
fn name(prefix: &str, listed: &str, taken: &HashSet<ToolName>) -> Result<ToolName, Problem> {
    let full_name = if prefix.is_empty() { listed.to_owned() } else { format!("{prefix}_{listed}") };
    let plain = ToolName::new(&full_name).ok().filter(|name| !taken.contains(name));
    match plain {
        Some(name) => Ok(name),
        None => ToolName::new(&distinct_name(&full_name, listed))
            .map_err(|error| Problem::new("name", "invalid_name", error.to_string())),
    }
}

fn spec(server: &McpServer, tool: &ListedTool, name: ToolName) -> Result<ToolSpec, Problem> {
    let mcp = Mcp {
        server: Some(server.id.to_string()),
        tool_name: tool.name.clone(),
        hints: tool.hints,
        ..Mcp::default()
    };
    let mut spec = ToolSpec::new(name, Implementation::Mcp(mcp));
    spec.description = sanitize(&tool.description);
    if let Some(title) = tool.title.as_deref().filter(|title| !title.trim().is_empty()) {
        spec.display_name = excerpt(title, 200);
    }
    server.apply_settings(&mut spec);
    let input = schema("input_schema", &tool.input_schema)?;
    let kind = input.get("type");
    if kind.is_some() && !includes_type(kind, "object") {
        let message = "must be `object`, because arguments are always an object";
        return Err(Problem::new("input_schema.type", "invalid_value", message));
    }
    spec.input_schema = input.into();
    if let Some(output) = &tool.output_schema {
        spec.output_schema = schema("output_schema", output)?.into();
    }
    if tool.read_only {
        spec.tags.push(READ_ONLY.to_owned());
    }
    Ok(spec)
}

fn schema(field: &str, schema: &Value) -> Result<Value, Problem> {
    match schema {
        Value::Null => Ok(json!({})),
        Value::Object(_) => match Schema::compile(field, schema) {
            Ok(_) => Ok(schema.clone()),
            Err(mut problems) => {
                let normalized = normalize(schema);
                if Schema::compile(field, &normalized).is_ok() {
                    return Ok(normalized);
                }
                let unknown = || Problem::new(field, "invalid_schema", "invalid JSON Schema");
                Err(problems.pop().unwrap_or_else(unknown))
            }
        },
        _ => Err(Problem::new(field, "invalid_schema", "expected an object")),
    }
}

/// Sanitizes a foreign text: truncates it and removes characters that hide or reorder others.
fn sanitize(text: &str) -> String {
    let hides = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    text.chars().filter(|c| !hides(*c)).take(MAX_DESCRIPTION).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use haft_core::implementation::ToolHints;
    use haft_core::mcp::{Stdio, Transport};
    use haft_core::name::{BundleSlug, TenantId};

    fn server(prefix: &str) -> McpServer {
        let transport = Transport::Stdio(Stdio { command: "x".into(), ..Stdio::default() });
        let id = BundleSlug::new("files").unwrap();
        McpServer { prefix: prefix.to_owned(), ..McpServer::new(id, TenantId::default_tenant(), transport) }
    }

    fn listed(name: &str) -> ListedTool {
        ListedTool { name: name.to_owned(), input_schema: json!({"type": "object"}), ..ListedTool::default() }
    }

    fn names(prefix: &str, tools: &[ListedTool]) -> (Vec<String>, Vec<String>) {
        let made = import(&server(prefix), tools, |_| Vec::new());
        let names = made.tools.iter().map(|tool| tool.spec.name.to_string()).collect();
        (names, made.refused.iter().map(|(name, problem)| format!("{name}: {problem}")).collect())
    }

    #[test]
    fn names_are_kept_where_they_are_legal_and_told_apart_where_not() {
        let (kept, refused) =
            names("", &[listed("read_file"), listed("a/b"), listed("a b"), listed("read_file")]);
        assert_eq!(kept[0], "read_file");
        assert!(kept[1].starts_with("a_b_") && kept[2].starts_with("a_b_") && kept[1] != kept[2], "{kept:?}");
        assert_eq!(
            refused,
            ["read_file: `name`: duplicate name: the server lists another tool with this name"]
        );
        assert_eq!(names("fs", &[listed("read")]).0, ["fs_read"]);
        let routes = ["search", "tools", "bundles", "definitions", "builtins"];
        assert_eq!(names("", &routes.map(listed)).0, routes);
        let long = "x".repeat(300);
        assert_eq!(names("", &[listed(&long)]).0[0].len(), 64);
    }

    #[test]
    fn a_schema_that_is_none_keeps_out_that_tool_alone() {
        let broken = ListedTool { input_schema: json!({"type": "objekt"}), ..listed("broken") };
        let list = ListedTool { input_schema: json!([]), ..listed("list") };
        let text = ListedTool { input_schema: json!({"type": "string"}), ..listed("text") };
        let (kept, refused) = names("", &[broken, list, text, listed("good")]);
        assert_eq!((kept, refused.len()), (vec!["good".to_owned()], 3));
    }

    #[test]
    fn a_description_cannot_hide_anything() {
        let tricky = ListedTool {
            description: "Reads\u{202e}drow\u{200b} a\u{e0041} file\u{7}\nsecond".to_owned(),
            ..listed("t")
        };
        let made = import(&server(""), &[tricky], |_| Vec::new());
        assert_eq!(made.tools[0].spec.description, "Readsdrow a file\nsecond");
    }

    #[test]
    fn every_word_that_a_model_reads_is_in_the_digest() {
        let base = listed("t");
        let others = [
            ListedTool { description: "now deletes".into(), ..base.clone() },
            ListedTool { title: Some("T".into()), ..base.clone() },
            ListedTool { input_schema: json!({"type": "object", "required": ["a"]}), ..base.clone() },
            ListedTool { read_only: true, ..base.clone() },
            ListedTool {
                hints: ToolHints { destructive: Some(false), ..ToolHints::default() },
                ..base.clone()
            },
        ];
        for other in others {
            assert_ne!(other.digest(), base.digest(), "{other:?}");
        }
    }
}
