//! `delete_tool`: a model deletes a user-created tool.

use std::sync::Arc;

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::catalog::Backup;
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::spec::ToolSpec;
use haft_core::token::Role;
use haft_core::tool::Source;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::audit;
use crate::context::Context;
use crate::error::{ServiceError, call_error};
use crate::identity::Identity;
use crate::late::Late;
use crate::rights::require_in_call;
use crate::tools::Deletion;
use crate::{bundles, tools};

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "delete_tool",
        description: "Delete a user-created tool. Built-in tools and the tools of toolsets and MCP servers cannot be deleted. \
                      A backup of the definition is kept; `backup_path` in the result is its location. A tool that other \
                      tools or agents use is deleted with `force` only.",
        category: "tools",
        tags: &["tools", "delete"],
        input: json!({
            "type": "object",
            "properties": {
                "tool": {"type": "string", "minLength": 1, "maxLength": 300, "description": "Name, bundle:name or id of the tool"},
                "force": {"type": "boolean", "default": false, "description": "Delete it even if tools or agents use it"},
            },
            "required": ["tool"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {"deleted": {"type": "string"}, "backup_path": {"type": ["string", "null"]}},
            "required": ["deleted"],
        }),
    })
}

/// Deletes tools.
pub(super) struct DeleteTool(pub(super) Late<Context>);

#[derive(Deserialize)]
pub(super) struct Args {
    tool: String,
    #[serde(default)]
    force: bool,
}

impl BuiltIn for DeleteTool {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let (app, identity) = (self.0.get()?, Identity::from_call(call));
        let (inner, caller, tool, force) =
            (Arc::clone(&app), identity.clone(), args.tool.clone(), args.force);
        let work = async move { delete(&inner, &caller, &tool, force).await };
        audit::run_change(&app, &identity, ("tool.delete", &args.tool), work).await.map_err(call_error)
    }
}

async fn delete(
    app: &Context,
    identity: &Identity,
    reference: &str,
    force: bool,
) -> Result<Value, ServiceError> {
    require_in_call(app, identity, Role::Editor)?;
    let entry = tools::find(app, identity, reference)?;
    let owner = match entry.tool.source {
        Source::User => None,
        Source::BuiltIn => Some("is built in"),
        Source::Toolset => Some("belongs to a toolset"),
        Source::Mcp => Some("belongs to an MCP server"),
    };
    if let Some(owner) = owner {
        let message = format!("`{}` {owner}; only user-created tools can be deleted", entry.qualified);
        return Err(ServiceError::new(ErrorCode::ReadOnly, message));
    }
    bundles::require_enabled_bundle(app, identity, &entry)?;
    let deletion = Deletion { backup: Backup::Keep, force };
    let backup_path = tools::delete(app, identity, &entry, deletion).await?;
    Ok(json!({"deleted": entry.qualified, "backup_path": backup_path}))
}
