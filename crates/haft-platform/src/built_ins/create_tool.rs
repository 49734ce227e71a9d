//! `create_tool`: a model creates a tool, under the rules of `POST /tools`.

use std::sync::Arc;

use haft_builtins::{BuiltIn, Describe, describe};
use haft_core::catalog::{FileForm, SourceText};
use haft_core::executor::CallContext;
use haft_core::name::NameError;
use haft_core::outcome::{ErrorCode, Outcome};
use haft_core::spec::{Policy, ToolSpec};
use haft_core::token::Role;
use haft_definition::dialect::{self, Defaults, ParsedDefinition};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::audit;
use crate::context::Context;
use crate::error::{ServiceError, call_error};
use crate::identity::Identity;
use crate::late::Late;
use crate::rights::require_in_call;
use crate::tools;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "create_tool",
        description: "Create a tool from a definition and store it; it can be called immediately. First use search_tools to check \
                      whether a suitable tool exists. Each call of the new tool needs approval, unless an admin sets `policy` to \
                      `allow`. Returns its name, id and warnings. An invalid definition is rejected with a list of all problems.",
        category: "tools",
        tags: &["tools", "create"],
        input: json!({
            "type": "object",
            "properties": {
                "definition": {
                    "anyOf": [{"type": "object"}, {"type": "string", "minLength": 1, "maxLength": 1_000_000}],
                    "description": "The definition: an object with name, description, input_schema and implementation, for example \
                                    {\"type\": \"http\", \"method\": \"GET\", \"url\": \"https://api.example.com/${city}\"} or \
                                    {\"type\": \"script\", \"runtime\": \"bash\", \"body\": \"echo \\\"$city\\\"\"}; or a string with \
                                    YAML, or with a .skill file (front matter and body)",
                },
                "policy": {
                    "enum": ["elevated", "allow"],
                    "description": "Who may call the tool: elevated (each call needs approval) or allow (every caller; only an admin may set it)",
                },
            },
            "required": ["definition"],
            "additionalProperties": false,
        }),
        output: json!({
            "type": "object",
            "properties": {
                "name": {"type": "string"}, "tool": {"type": "string"}, "id": {"type": "string"}, "policy": {"type": "string"},
                "warnings": {"type": "array"},
            },
            "required": ["name", "tool", "id", "policy"],
        }),
    })
}

/// Creates tools.
pub(super) struct CreateTool(pub(super) Late<Context>);

#[derive(Deserialize)]
pub(super) struct Args {
    definition: Value,
    policy: Option<Policy>,
}

impl BuiltIn for CreateTool {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let (app, identity) = (self.0.get()?, Identity::from_call(call));
        let (inner, caller) = (Arc::clone(&app), identity.clone());
        let work = async move { create(&inner, &caller, args).await };
        Box::pin(audit::run_change(&app, &identity, ("tool.create", ""), work)).await.map_err(call_error)
    }
}

async fn create(app: &Context, identity: &Identity, args: Args) -> Result<Value, ServiceError> {
    require_in_call(app, identity, Role::Editor)?;
    let (mut parsed, text) = parse(args.definition)?;
    parsed.spec.policy = match (args.policy, parsed.spec.policy) {
        (_, Policy::Deny) => Policy::Deny,
        (Some(Policy::Allow), _) if identity.role < Role::Admin => {
            let message = "policy `allow` needs the role `admin`; omit `policy` to create the tool with policy `elevated`";
            return Err(ServiceError::new(ErrorCode::Forbidden, message));
        }
        (Some(Policy::Allow), _) => Policy::Allow,
        (Some(Policy::Elevated | Policy::Deny) | None, _) => Policy::Elevated,
    };
    let (tool, warnings) = tools::store(app, identity, None, parsed, text).await?;
    audit::note(identity, "tool.create", &tool.qualified());
    Ok(json!({
        "name": tool.spec.name.as_str(), "tool": tool.qualified(), "id": tool.id.to_string(),
        "policy": tool.spec.policy.as_str(), "warnings": warnings,
    }))
}

fn parse(definition: Value) -> Result<(ParsedDefinition, Option<SourceText>), ServiceError> {
    let (parsed, text) = match definition {
        Value::String(text) => {
            let form = detect_form(&text);
            (dialect::read(&text, form, &Defaults::default()), Some(SourceText { form, text }))
        }
        value => (dialect::read_value(value, &Defaults::default()), None),
    };
    Ok((parsed.map_err(|problems| ServiceError::invalid_definition(&problems))?, text))
}

/// Detects the form of a text. JSON is valid YAML, but its own parser reports better errors.
fn detect_form(text: &str) -> FileForm {
    let text = text.trim_start();
    let is_skill = text.strip_prefix("---").is_some_and(|rest| rest.contains("\n---"));
    match text.chars().next() {
        Some('{') => FileForm::Json,
        _ if is_skill => FileForm::Skill,
        _ => FileForm::Yaml,
    }
}
