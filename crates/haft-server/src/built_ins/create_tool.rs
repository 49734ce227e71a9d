//! `create_tool`: a model makes a tool, under the rules of `POST /tools`.

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

use super::late::{Late, outcome};
use crate::app::App;
use crate::error::ApiError;
use crate::identity::Identity;
use crate::routes::tools;

pub(super) fn spec() -> Result<ToolSpec, NameError> {
    describe(Describe {
        name: "create_tool",
        description: "Make a new tool from a definition and store it; it can be called at once. Use search_tools first to see \
                      whether there is one already. The tool needs an approval for each call, unless an admin says otherwise \
                      with `policy`. Returns its name, id and warnings; a definition with faults is refused with all of them.",
        category: "tools",
        tags: &["tools", "create"],
        input: json!({
            "type": "object",
            "properties": {
                "definition": {
                    "anyOf": [{"type": "object"}, {"type": "string", "minLength": 1, "maxLength": 1_000_000}],
                    "description": "The definition: an object with name, description, input_schema and implementation, such as \
                                    {\"type\": \"http\", \"method\": \"GET\", \"url\": \"https://api.example.com/${city}\"} or \
                                    {\"type\": \"script\", \"runtime\": \"bash\", \"body\": \"echo \\\"$city\\\"\"}; or a text in YAML, or a \
                                    .skill file with front matter",
                },
                "policy": {
                    "enum": ["elevated", "allow"],
                    "description": "Who may call it: elevated (an approval is needed) or allow (everyone; only an admin may say so)",
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

/// Makes tools.
pub(super) struct CreateTool(pub(super) Late);

#[derive(Deserialize)]
pub(super) struct Args {
    definition: Value,
    policy: Option<Policy>,
}

impl BuiltIn for CreateTool {
    type Args = Args;

    async fn call(&self, call: &CallContext, args: Args) -> Outcome {
        let (app, identity) = (self.0.get()?, Identity::of_call(call));
        let (inner, caller) = (Arc::clone(&app), identity.clone());
        let work = async move { create(&inner, &caller, args).await };
        app.change(&identity, ("tool.create", ""), work).await.map_err(outcome)
    }
}

async fn create(app: &App, identity: &Identity, args: Args) -> Result<Value, ApiError> {
    identity.require(Role::Editor)?;
    let (mut reading, text) = read(args.definition)?;
    reading.spec.policy = match (args.policy, reading.spec.policy) {
        (_, Policy::Deny) => Policy::Deny,
        (Some(Policy::Allow), _) if identity.role < Role::Admin => {
            let message = "only an admin makes tools that everyone may call; leave `policy` out";
            return Err(ApiError::new(ErrorCode::Forbidden, message));
        }
        (Some(Policy::Allow), _) => Policy::Allow,
        (Some(Policy::Elevated | Policy::Deny) | None, _) => Policy::Elevated,
    };
    let (tool, warnings) = tools::store(app, identity, None, reading, text).await?;
    app.audit(identity, "tool.create", &tool.qualified());
    Ok(json!({
        "name": tool.spec.name.as_str(), "tool": tool.qualified(), "id": tool.id.to_string(),
        "policy": tool.spec.policy.as_str(), "warnings": warnings,
    }))
}

fn read(definition: Value) -> Result<(ParsedDefinition, Option<SourceText>), ApiError> {
    let (reading, text) = match definition {
        Value::String(text) => {
            let form = form(&text);
            (dialect::read(&text, form, &Defaults::default()), Some(SourceText { form, text }))
        }
        value => (dialect::read_value(value, &Defaults::default()), None),
    };
    Ok((reading.map_err(|problems| ApiError::invalid_definition(&problems))?, text))
}

/// JSON is YAML too, but has errors of its own.
fn form(text: &str) -> FileForm {
    let text = text.trim_start();
    let is_skill = text.strip_prefix("---").is_some_and(|rest| rest.contains("\n---"));
    match text.chars().next() {
        Some('{') => FileForm::Json,
        _ if is_skill => FileForm::Skill,
        _ => FileForm::Yaml,
    }
}
