//! JSON Schemas of the definitions, for editors. They contain no data of a tenant, so they need no token.

use axum::Json;
use axum::extract::Path;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use haft_definition::editor_schema::SchemaKind;
use serde_json::{Value, json};

use crate::error::ApiError;

/// Lists the schemas.
pub(crate) async fn list() -> Json<Value> {
    let schemas = SchemaKind::ALL.map(|kind| {
        json!({"kind": kind.as_str(), "files": kind.files(), "path": format!("/schemas/{}.json", kind.as_str())})
    });
    Json(json!({"schemas": schemas}))
}

/// Serves one schema, such as `tool.json`.
pub(crate) async fn file(Path(name): Path<String>) -> Response {
    let kind = name.strip_suffix(".json").and_then(SchemaKind::parse);
    match kind {
        Some(kind) => {
            let headers =
                [(header::CONTENT_TYPE, "application/schema+json"), (header::CACHE_CONTROL, "no-cache")];
            (headers, kind.schema().to_string()).into_response()
        }
        None => ApiError::not_found("schema", &name).into_response(),
    }
}
