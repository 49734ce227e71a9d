//! `describe_tool`: the full definition of a tool for a model.

use std::sync::Arc;

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{CallError, ErrorCode, Outcome};
use haft_core::problem::excerpt;
use haft_core::reference::ToolRef;
use haft_core::spec::ToolSpec;
use haft_runtime::policy::PolicyHandle;
use haft_runtime::registry::{Audience, Entry, Naming, Snapshot};
use serde::Deserialize;
use serde_json::json;

use crate::context::Context;
use crate::late::Late;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "describe_tool",
        description: "Return the full description and input schema of a tool on this server. Use it before you call a tool that \
                      search_tools has found.",
        category: "tools",
        tags: &["tools", "read-only"],
        input: json!({
            "type": "object",
            "properties": {
                "tool": {"type": "string", "minLength": 1, "maxLength": 300, "description": "Name, bundle:name or id of the tool"},
                "bundle": {"type": "string", "minLength": 1, "maxLength": 100, "description": "Only a tool of this bundle"},
            },
            "required": ["tool"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"}, "tool": {"type": "string"}, "title": {"type": "string"},
                "description": {"type": "string"}, "input_schema": {"type": ["object", "boolean"]},
                "output_schema": {"type": ["object", "boolean"]}, "needs_approval": {"type": "boolean"},
            },
            "required": ["name", "tool", "description", "input_schema"],
        }),
    })
}

/// Describes tools.
pub(super) struct DescribeTool(pub(super) Late<Context>);

#[derive(Deserialize)]
pub(super) struct Args {
    tool: String,
    bundle: Option<String>,
}

impl BuiltIn for DescribeTool {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let app = self.0.get()?;
        let snapshot = app.registry().snapshot();
        let entry = find(&snapshot, app.policy().handle(), call, &args)?;
        let spec = snapshot.offer(entry, audience(call)).spec;
        let mut described = json!({
            "name": spec.name.as_str(),
            "tool": entry.qualified,
            "description": spec.description,
            "input_schema": spec.input_schema,
            "needs_approval": spec.needs_approval(),
        });
        if let Some(map) = described.as_object_mut() {
            if !spec.display_name.is_empty() {
                map.insert("title".to_owned(), spec.display_name.clone().into());
            }
            if !spec.output_schema.is_empty() {
                map.insert("output_schema".to_owned(), spec.output_schema.value());
            }
        }
        Ok(described)
    }
}

fn audience(call: &CallContext) -> Audience<'_> {
    Audience { tenant: call.tenant(), mode: call.mode, naming: Naming::FirstCome }
}

/// Finds a tool that can be called, by a reference or by the name that models see, in one bundle if the call says so.
fn find<'a>(
    snapshot: &'a Snapshot,
    policy: &PolicyHandle,
    call: &'a CallContext,
    args: &Args,
) -> Result<&'a Arc<Entry>, CallError> {
    let mode = call.mode;
    let accept = |entry: &&Arc<Entry>| {
        args.bundle.as_deref().is_none_or(|bundle| bundle == entry.tool.bundle.as_str())
            && policy.may_call_on_any_surface(call.principal(), &entry.tool)
            && snapshot.is_runnable(entry, mode)
    };
    let resolve = |text: &str| {
        let reference: ToolRef = text.parse().ok()?;
        snapshot.resolve_called(text, &reference, audience(call)).ok().filter(accept)
    };
    // A bare name may mean a tool of another bundle first.
    let in_bundle = || resolve(&format!("{}:{}", args.bundle.as_deref()?, args.tool));
    resolve(&args.tool).or_else(in_bundle).ok_or_else(|| {
        let within = args.bundle.as_ref().map_or(String::new(), |bundle| format!(" in bundle `{bundle}`"));
        let name = excerpt(&args.tool, 100);
        let message =
            format!("tool `{name}` not found{within}, or it cannot be called; use search_tools to find one");
        CallError::new(ErrorCode::NotFound, message)
    })
}
