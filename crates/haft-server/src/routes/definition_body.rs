//! The definition in a request body: its dialect by media type, and the text that is stored.

use std::collections::HashMap;

use haft_core::catalog::{FileForm, SourceText};
use haft_core::outcome::ErrorCode;
use haft_core::spec::ToolSpec;
use haft_definition::dialect::{Defaults, ParsedDefinition};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use crate::body::Body;
use crate::error::ApiError;
use haft_platform::definition::read_all;

/// A definition in a request, as the OpenAPI document shows it; [`parse`] reads it.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[schema(example = json!({
    "name": "greet",
    "description": "Greets somebody by name",
    "implementation": {"type": "script", "runtime": "bash", "body": "echo \"Hello, $name!\""},
    "input_schema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}))]
#[expect(dead_code, reason = "only describes the body")]
pub(crate) enum DefinitionBody {
    /// The canonical form.
    Canonical(Box<ToolSpec>),
    /// Another dialect: a skill, a registry, a script or an API definition.
    Dialect(HashMap<String, Value>),
}

/// Parses a body, in the dialect that its media type and its keys indicate.
pub(crate) fn parse(body: &Body, defaults: &Defaults) -> Result<ParsedDefinition, ApiError> {
    read_all(body.text()?, form_of(body)?, defaults)
        .map_err(|problems| ApiError::invalid_definition(&problems))
}

fn form_of(body: &Body) -> Result<FileForm, ApiError> {
    match body.media_type.as_str() {
        "application/x-haft-skill" => Ok(FileForm::Skill),
        "application/yaml" | "application/x-yaml" | "text/yaml" | "text/x-yaml" => Ok(FileForm::Yaml),
        // `curl -d` declares a form unless a header is given, but sends JSON.
        "" | "application/json" | "text/json" | "application/x-www-form-urlencoded" | "text/plain" => {
            Ok(FileForm::Json)
        }
        other => {
            let message = format!(
                "unsupported media type `{other}`; send `application/json`, `application/yaml` or \
                 `application/x-haft-skill`"
            );
            Err(ApiError::new(ErrorCode::UnsupportedMediaType, message))
        }
    }
}

/// Returns the text that the author wrote, to be stored in the file. A response of the API that is sent back, and JSON
/// on one line, have no layout worth keeping; they are formatted anew.
pub(crate) fn author_text(body: &Body, parsed: &ParsedDefinition) -> Option<SourceText> {
    let (form, text) = (form_of(body).ok()?, body.text().ok()?);
    let has_layout = form != FileForm::Json || text.trim().contains('\n');
    (has_layout && !parsed.from_api).then(|| SourceText { form, text: text.to_owned() })
}
