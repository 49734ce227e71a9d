//! Reads references to code artifacts, and inline ones.

use serde_json::Value;

use super::fields::{Fields, describe, join};
use haft_core::artifact::{ArtifactInput, ArtifactRuntime, InputType};
use haft_core::implementation::{Artifact, Implementation};
use haft_core::problem::excerpt;

pub(super) fn read(fields: &mut Fields<'_>) -> Option<Implementation> {
    let artifact_id = fields.alias(&["artifact_id", "artifact"]).and_then(|key| fields.text(key));
    // `3` and `"3"` are the same version.
    let artifact_version = fields.value("artifact_version").and_then(|version| match version {
        Value::String(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        other => {
            let message = format!("expected a version, found {}", describe(&other));
            fields.error("artifact_version", "wrong_type", message);
            None
        }
    });
    let runtime = fields.choice("runtime", &ArtifactRuntime::ALL);
    let source = fields.alias(&["source", "code"]).and_then(|key| fields.text(key));
    let inputs = inputs(fields);
    let config = fields.object("config").unwrap_or_default();
    if artifact_id.is_none() && source.is_none() {
        fields.missing("artifact_id", "the id of a stored artifact, or `source` with inline code");
        return None;
    }
    Some(Implementation::Artifact(Artifact {
        artifact_id,
        runtime,
        source,
        inputs,
        artifact_version,
        config,
    }))
}

/// Inputs are a list, or a map from the name to the input or its type.
pub(crate) fn inputs(fields: &mut Fields<'_>) -> Vec<ArtifactInput> {
    let Some(Value::Object(_)) = fields.peek("inputs") else {
        let items = fields.nested_list("inputs").unwrap_or_default();
        return items.into_iter().filter_map(|item| input(item, None)).collect();
    };
    let (map, path) = (fields.object("inputs").unwrap_or_default(), fields.path("inputs"));
    let mut inputs = Vec::new();
    for (name, item) in map {
        let path = join(&path, &excerpt(&name, 60));
        let map = match item {
            Value::Object(map) => map,
            Value::String(kind) => [("type".to_owned(), Value::String(kind))].into_iter().collect(),
            other => {
                let message = format!("expected a map or a type, found {}", describe(&other));
                fields.report().error(path, "wrong_type", message);
                continue;
            }
        };
        inputs.extend(input(Fields::new(path, map, fields.report()), Some(name)));
    }
    inputs
}

fn input(mut fields: Fields<'_>, key: Option<String>) -> Option<ArtifactInput> {
    let name = key.or_else(|| fields.required_text("name", "the name of the input"));
    let kind = fields.choice("type", &InputType::ALL).unwrap_or_default();
    let required = fields.flag("required").unwrap_or_default();
    let default = fields.raw("default");
    let description = fields.text("description").unwrap_or_default();
    Some(ArtifactInput { name: name?, kind, required, default, description })
}
