//! The envelope of successful responses.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// `{"status":"success","data":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Success<T> {
    status: SuccessStatus,
    /// The result.
    data: T,
}

/// The status of every successful response.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SuccessStatus {
    /// The request succeeded.
    Success,
}

/// A message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Message {
    #[schema(example = "Token deleted")]
    message: String,
}

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
