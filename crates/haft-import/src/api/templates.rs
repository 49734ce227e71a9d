//! Writes foreign text into templates.

use haft_core::implementation::{Auth, Implementation};
use haft_core::spec::ToolSpec;
use serde_json::{Value, json};

/// Escapes a text for a template, so that nothing in it is a reference to an argument or a secret.
pub(crate) fn literal(text: &str) -> String {
    text.replace("${", "$${")
}

/// Returns the schema of an argument that is a file.
pub(crate) fn file_schema(description: &str) -> Value {
    let words = if description.is_empty() { String::new() } else { format!("{description} ") };
    json!({
        "description": format!(
            "{words}A file: its text, or an object with `text`, `base64`, or `path` of a file in the workspace, and \
             optionally `name` and `media_type`."
        ),
        "type": ["string", "object"],
        "properties": {
            "text": {"type": "string"},
            "base64": {"type": "string"},
            "path": {"type": "string"},
            "name": {"type": "string"},
            "media_type": {"type": "string"},
            "size": {"type": "integer"}
        }
    })
}

/// The maximum size of a request with files, in bytes, instead of the default.
const MAX_UPLOAD: u64 = 32 * 1024 * 1024;

/// Raises the limit on requests of a tool that sends files.
pub(crate) fn allow_uploads(spec: &mut ToolSpec) {
    if matches!(&spec.implementation, Implementation::Http(http) if !http.request.files.is_empty()) {
        spec.execution.limits.max_request_bytes = MAX_UPLOAD;
    }
}

/// Returns the names of the secrets in an `auth`.
pub(crate) fn secret_names(auth: &Auth) -> Vec<String> {
    let text = serde_json::to_string(auth).unwrap_or_default();
    let names = text.split("${").skip(1).filter_map(|part| part.split_once('}'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}
