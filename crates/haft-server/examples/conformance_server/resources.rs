//! The resources.

use haft_server::ExtensionResult;
use serde_json::{Value, json};

use super::{PNG, not_found};

const TEXT: &str = "test://static-text";
const BINARY: &str = "test://static-binary";
const WATCHED: &str = "test://watched-resource";

/// Lists the resources.
pub(crate) fn list() -> Value {
    let resource = |uri: &str, mime_type: &str| {
        let name = uri.trim_start_matches("test://");
        json!({"uri": uri, "name": name, "description": format!("Test resource: {name}"), "mimeType": mime_type})
    };
    json!({"resources": [
        resource(TEXT, "text/plain"), resource(BINARY, "image/png"), resource(WATCHED, "text/plain"),
    ]})
}

/// Lists the resource templates.
pub(crate) fn templates() -> Value {
    json!({"resourceTemplates": [{
        "uriTemplate": "test://template/{id}/data", "name": "template",
        "description": "Test resource template: one resource for each id", "mimeType": "application/json",
    }]})
}

/// Reads a resource.
pub(crate) fn read(uri: &str) -> ExtensionResult {
    let mut content = match uri {
        TEXT => json!({"mimeType": "text/plain", "text": "This is the content of the static text resource."}),
        BINARY => json!({"mimeType": "image/png", "blob": PNG}),
        WATCHED => json!({"mimeType": "text/plain", "text": "This resource can be watched."}),
        _ => match uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data")) {
            Some(id) if !id.is_empty() && !id.contains('/') => {
                let data = json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")});
                json!({"mimeType": "application/json", "text": data.to_string()})
            }
            _ => return Err(not_found("resource", json!({"uri": uri}))),
        },
    };
    if let Some(fields) = content.as_object_mut() {
        fields.insert("uri".to_owned(), uri.into());
    }
    Ok(json!({"contents": [content]}))
}
