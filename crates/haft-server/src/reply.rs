//! The envelope of every success.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// `{"status":"success","data":…}`.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Success<T> {
    /// Always `success`.
    #[schema(example = "success")]
    status: &'static str,
    /// What was asked for.
    data: T,
}

/// Wraps an answer.
pub(crate) fn success<T: Serialize>(data: T) -> Json<Success<T>> {
    Json(Success { status: "success", data })
}

/// Wraps an answer that made something new.
pub(crate) fn created<T: Serialize>(data: T) -> Response {
    (StatusCode::CREATED, success(data)).into_response()
}
