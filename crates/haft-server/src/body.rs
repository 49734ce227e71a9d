//! Request bodies: read whole, bounded, with errors that say where.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use haft_core::outcome::ErrorCode;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::ApiError;

/// What the parser says of JSON that is nested too deeply.
const TOO_DEEP: &str = "recursion limit exceeded";

/// How long a client may take to send a body.
const BODY_TIME: Duration = Duration::from_mins(1);

/// How much of a body that is too large is taken and thrown away, and for how long.
const DISCARDED_BYTES: usize = 128 * 1024 * 1024;
const DISCARD_TIME: Duration = Duration::from_secs(10);

/// A body as it came, with the type it claims.
pub(crate) struct Body {
    /// The bytes.
    pub(crate) bytes: Bytes,
    /// The media type, without parameters, in lower case.
    pub(crate) media_type: String,
}

impl FromRequest<Arc<App>> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, ApiError> {
        Self::read(request, app.settings().server.max_body_bytes, "server.max_body_bytes").await
    }
}

impl Body {
    /// Reads a body of at most so many bytes; `setting` is what allows more of them.
    pub(crate) async fn read(request: Request, most: usize, setting: &str) -> Result<Self, ApiError> {
        let media_type = media_type(request.headers());
        if claimed_length(request.headers()).is_some_and(|length| length > most) {
            discard(request).await;
            return Err(too_large(most, setting));
        }
        let reading = Limited::new(request.into_body(), most).collect();
        let collected = tokio::time::timeout(BODY_TIME, reading)
            .await
            .map_err(|_| ApiError::bad_request("the body took longer than a minute to arrive"))?
            .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => too_large(most, setting),
                None => ApiError::bad_request("the body ended before all of it had arrived; send it again"),
            })?;
        Ok(Self { bytes: collected.to_bytes(), media_type })
    }
}

/// Takes a body that nobody reads, within bounds: many clients look for an answer only when everything is sent, and would
/// see no more than a broken connection. Who asks first is answered first.
async fn discard(request: Request) {
    if request.headers().contains_key(header::EXPECT) {
        return;
    }
    let rest = Limited::new(request.into_body(), DISCARDED_BYTES);
    let mut rest = std::pin::pin!(rest);
    let reading = async { while let Some(Ok(_)) = rest.frame().await {} };
    // Whoever is slower than that gets the answer, or not.
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

fn claimed_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(most: usize, setting: &str) -> ApiError {
    let message = format!("the body is larger than the {most} bytes that `{setting}` allows");
    ApiError::new(ErrorCode::TooLarge, message)
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
            } else if error.to_string().starts_with(TOO_DEEP) {
                "the body is nested deeper than 128 levels, the most that are read".to_owned()
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
