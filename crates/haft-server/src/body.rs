//! Request bodies: read whole, bounded, with errors that say where.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, StatusCode, header};
use haft_core::outcome::ErrorCode;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// A body as it came, with the type it claims.
pub(crate) struct Body {
    /// The bytes.
    pub bytes: Bytes,
    /// The media type, without parameters, in lower case.
    pub media_type: String,
}

impl<S: Send + Sync> FromRequest<S> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let media_type = media_type(request.headers());
        let bytes = Bytes::from_request(request, state).await.map_err(|error| rejected(&error))?;
        Ok(Self { bytes, media_type })
    }
}

fn rejected(error: &BytesRejection) -> ApiError {
    if error.status() == StatusCode::PAYLOAD_TOO_LARGE {
        return ApiError::new(ErrorCode::TooLarge, "the body is larger than `server.max_body_bytes` allows");
    }
    ApiError::bad_request(format!("the body could not be read: {}", error.body_text()))
}

fn media_type(headers: &HeaderMap) -> String {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl Body {
    /// Returns the text.
    pub(crate) fn text(&self) -> Result<&str, ApiError> {
        std::str::from_utf8(&self.bytes).map_err(|error| {
            ApiError::bad_request(format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
        })
    }

    /// Reads the body as JSON, whatever type it claims: `curl -d` says it is a form.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let message = if error.is_data() {
                format!("the body is not as expected: {error}")
            } else {
                format!("the body is not valid JSON: {error}")
            };
            ApiError::bad_request(message)
        })
    }

    /// Reads the body as JSON; an empty one is the default.
    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, ApiError> {
        if self.bytes.iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { self.json() }
    }
}
