//! `mcp_call`: calls a tool of a configured MCP server by its name on that server.
//!
//! The imported tool is called through the pipeline: its accepted definition, schema, policy and limits apply, and the
//! call is recorded. A tool that was not imported, or was set aside, cannot be called.

use std::sync::Arc;

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::implementation::Implementation;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::{excerpt, nearest};
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_runtime::registry::Entry;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::nested_call::call_tool;
use crate::context::Context;
use crate::late::Late;

const NAME: &str = "mcp_call";

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    let mut spec = describe(Describe {
        name: NAME,
        description: "Call a tool of a connected MCP server, by server id and tool name. Prefer calling the tool directly if it is \
                      available (use search_tools to find it). Returns the result of the tool.",
        category: "tools",
        tags: &["mcp", "call"],
        input: json!({
            "type": "object",
            "properties": {
                "server": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Id of the MCP server"},
                "tool": {"type": "string", "minLength": 1, "maxLength": 200, "description": "Name of the tool on that server"},
                "arguments": {"type": "object", "description": "Arguments of the tool"},
            },
            "required": ["server", "tool"],
            "additionalProperties": false,
        }),
        output: json!(null),
    })?;
    spec.execution.timeout_ms = Some(60_000);
    spec.network = true;
    Ok(spec)
}

/// Calls tools of MCP servers.
pub(super) struct McpCall(pub(super) Late<Context>);

#[derive(Deserialize)]
pub(super) struct Args {
    server: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

impl BuiltIn for McpCall {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let app = self.0.get()?;
        let tool = find(&app, call, &args.server, &args.tool)?;
        call_tool(call, NAME, tool, args.arguments).await
    }
}

/// Finds the imported tool: by its name on the server, otherwise by its name in the catalog.
fn find(app: &Context, call: &CallContext, server: &str, tool: &str) -> Result<ToolRef, CallError> {
    let snapshot = app.registry().snapshot();
    let imported = |entry: &Arc<Entry>| match &entry.tool.spec.implementation {
        Implementation::Mcp(mcp) if mcp.server.as_deref() == Some(server) => Some(mcp.tool_name.clone()),
        _ => None,
    };
    let all: Vec<_> = snapshot
        .tools(call.tenant())
        .filter(|entry| entry.tool.bundle.as_str() == server)
        .filter_map(|entry| Some((imported(entry)?, entry)))
        .collect();
    let by_catalog_name = || all.iter().find(|(_, entry)| entry.tool.spec.name.as_str() == tool);
    if let Some((_, entry)) = all.iter().find(|(name, _)| name == tool).or_else(by_catalog_name) {
        return Ok(ToolRef::Id(entry.tool.id));
    }
    let server = excerpt(server, 100);
    let message = if all.is_empty() {
        format!("no tools of MCP server `{server}`; an administrator adds it with `haft mcp-server add`")
    } else {
        let near = nearest(tool, all.iter().map(|(name, _)| name.as_str()));
        let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        format!("MCP server `{server}` has no tool `{}`{hint}", excerpt(tool, 100))
    };
    Err(CallError::new(ErrorCode::NotFound, message))
}
