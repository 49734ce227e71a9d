//! The envelope of successful responses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

/// `{"status":"success","data":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Success<T> {
    /// Always `success`.
    #[schema(example = "success")]
    status: &'static str,
    /// The result.
    data: T,
}

/// Wraps a result.
pub(crate) fn success<T: Serialize>(data: T) -> Json<Success<T>> {
    Json(Success { status: "success", data })
}

/// Wraps a newly created resource, with status 201.
pub(crate) fn created<T: Serialize>(data: T) -> Response {
    (StatusCode::CREATED, success(data)).into_response()
}

/// Wraps a page of a list under its name, with the total and the token of the next page.
pub(crate) fn list<T: Serialize>(
    name: &str,
    items: &[T],
    total: impl Into<Value>,
    next_page_token: Option<&str>,
) -> Response {
    success(json!({name: items, "total": total.into(), "next_page_token": next_page_token})).into_response()
}

/// Wraps a message.
pub(crate) fn message(text: impl Into<Value>) -> Response {
    success(json!({"message": text.into()})).into_response()
}
