//! Turns the tools that an MCP server lists into definitions.

use std::collections::HashSet;

use serde_json::Value;

use crate::export::distinct_name;
use haft_core::implementation::{Implementation, Mcp};
use haft_core::mcp::{ListedTool, MAX_TOOLS, McpServer};
use haft_core::name::ToolName;
use haft_core::problem::{Problem, excerpt};
use haft_core::schema::Schema;
use haft_core::schema::normalize::normalize;
use haft_core::schema::walk::includes_type;
use haft_core::spec::{ToolSpec, empty_schema};

/// The tag of tools of which their server says that they change nothing.
pub const READ_ONLY: &str = "read-only";
/// The most characters that are taken of a description.
const MAX_DESCRIPTION: usize = 10_000;

/// One tool that was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedTool {
    /// The definition.
    pub spec: ToolSpec,
    /// The digest of what the server listed.
    pub digest: String,
}

/// What became of a list.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct McpImport {
    /// What was taken, in the server's order.
    pub tools: Vec<ImportedTool>,
    /// What was not, by the name that the server gave, and why.
    pub refused: Vec<(String, Problem)>,
}

/// Makes definitions of what a server lists. What is wrong with one of them does not keep the others out.
pub fn import(server: &McpServer, listed: &[ListedTool]) -> McpImport {
    let mut made = McpImport::default();
    let mut there: HashSet<&str> = HashSet::new();
    let mut names: HashSet<ToolName> = HashSet::new();
    for tool in listed {
        let mut refuse = |code: &str, message: String| {
            made.refused.push((excerpt(&tool.name, 100), Problem::new("name", code, message)));
        };
        if made.tools.len() >= MAX_TOOLS {
            refuse("too_many", format!("a server may have at most {MAX_TOOLS} tools"));
            break;
        }
        if !there.insert(&tool.name) {
            refuse("duplicate", "the server lists another tool of this name before it".to_owned());
            continue;
        }
        let name = match name(&server.prefix, &tool.name, &names) {
            Ok(name) => name,
            Err(problem) => {
                made.refused.push((excerpt(&tool.name, 100), problem));
                continue;
            }
        };
        match spec(server, tool, name.clone()) {
            Ok(spec) => {
                names.insert(name);
                made.tools.push(ImportedTool { spec, digest: tool.digest() });
            }
            Err(problem) => made.refused.push((excerpt(&tool.name, 100), problem)),
        }
    }
    made
}

/// Makes a legal name: as the server spells it where that is one, else what can be kept of it and a hash.
fn name(prefix: &str, listed: &str, taken: &HashSet<ToolName>) -> Result<ToolName, Problem> {
    let wanted = if prefix.is_empty() { listed.to_owned() } else { format!("{prefix}_{listed}") };
    let plain = ToolName::new(&wanted).ok().filter(|name| !taken.contains(name));
    match plain {
        Some(name) => Ok(name),
        None => ToolName::new(&distinct_name(&wanted, listed))
            .map_err(|error| Problem::new("name", "invalid_name", error.to_string())),
    }
}

fn spec(server: &McpServer, tool: &ListedTool, name: ToolName) -> Result<ToolSpec, Problem> {
    let mcp = Mcp { server: Some(server.id.to_string()), tool_name: tool.name.clone(), ..Mcp::default() };
    let mut spec = ToolSpec::new(name, Implementation::Mcp(mcp));
    spec.description = shown(&tool.description);
    if let Some(title) = tool.title.as_deref().filter(|title| !title.trim().is_empty()) {
        spec.display_name = excerpt(title, 200);
    }
    spec.policy = server.policy;
    spec.input_schema = schema("input_schema", &tool.input_schema)?;
    let kind = spec.input_schema.get("type");
    if kind.is_some() && !includes_type(kind, "object") {
        let message =
            "arguments are always a map, so no call could fit; the schema's `type` has to be `object`";
        return Err(Problem::new("input_schema.type", "invalid_value", message));
    }
    // A server may return what its own schema forbids; the arguments are ours to check, the value is checked too.
    if let Some(output) = &tool.output_schema {
        spec.output_schema = schema("output_schema", output)?;
    }
    if tool.read_only {
        spec.tags.push(READ_ONLY.to_owned());
    }
    Ok(spec)
}

fn schema(field: &str, schema: &Value) -> Result<Value, Problem> {
    match schema {
        Value::Null => Ok(empty_schema()),
        Value::Object(_) => match Schema::compile(field, schema) {
            Ok(_) => Ok(schema.clone()),
            Err(mut problems) => {
                let softer = normalize(schema);
                if Schema::compile(field, &softer).is_ok() {
                    return Ok(softer);
                }
                let unknown = || Problem::new(field, "invalid_schema", "it is not a JSON Schema");
                Err(problems.pop().unwrap_or_else(unknown))
            }
        },
        _ => Err(Problem::new(field, "invalid_schema", "expected an object")),
    }
}

/// What a stranger wrote is shown as text: bounded, and without characters that hide or reorder others.
fn shown(text: &str) -> String {
    let hides = |c: char| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
            || matches!(c, '\u{e0000}'..='\u{e007f}')
    };
    text.chars().filter(|c| !hides(*c)).take(MAX_DESCRIPTION).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
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
        let made = import(&server(prefix), tools);
        let names = made.tools.iter().map(|tool| tool.spec.name.to_string()).collect();
        (names, made.refused.iter().map(|(name, problem)| format!("{name}: {problem}")).collect())
    }

    #[test]
    fn names_are_kept_where_they_are_legal_and_told_apart_where_not() {
        let (kept, refused) =
            names("", &[listed("read_file"), listed("a/b"), listed("a b"), listed("read_file")]);
        assert_eq!(kept[0], "read_file");
        assert!(kept[1].starts_with("a_b_") && kept[2].starts_with("a_b_") && kept[1] != kept[2], "{kept:?}");
        assert_eq!(refused, ["read_file: `name`: the server lists another tool of this name before it"]);
        assert_eq!(names("fs", &[listed("read")]).0, ["fs_read"]);
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
        let made = import(&server(""), &[tricky]);
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
        ];
        for other in others {
            assert_ne!(other.digest(), base.digest(), "{other:?}");
        }
    }
}
