//! The envelope of successful responses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
pub(crate) use haft_api::reply::{Message, Success, SuccessStatus};
use serde::Serialize;

/// Wraps a result.
pub(crate) fn success<T: Serialize>(data: T) -> Json<Success<T>> {
    Json(Success { status: SuccessStatus::Success, data })
}

/// Wraps a newly created resource, with status 201.
pub(crate) fn created<T: Serialize>(data: T) -> Response {
    (StatusCode::CREATED, success(data)).into_response()
}

/// Wraps a message.
pub(crate) fn message(text: impl Into<String>) -> Response {
    success(Message { message: text.into() }).into_response()
}
