//! Request bodies: bounded in size and time, with errors that name the field.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use crate::error::ApiError;
pub(crate) use haft_api::read::optional_object;
use haft_platform::Installation;

/// The deepest nesting that the JSON parser accepts.
const MAX_DEPTH: usize = 127;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_mins(1);

/// How much of a rejected body is read and discarded, and for how long.
const MAX_DISCARDED_BYTES: usize = 128 * 1024 * 1024;
const DISCARD_TIMEOUT: Duration = Duration::from_secs(10);

/// A request body and its declared media type.
pub(crate) struct Body {
    /// The bytes.
    pub(crate) bytes: Bytes,
    /// The media type, without parameters, in lower case.
    pub(crate) media_type: String,
}

impl FromRequest<Arc<Installation>> for Body {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &Arc<Installation>) -> Result<Self, ApiError> {
        Self::read(request, app.settings().server.max_body_bytes, "server.max_body_bytes").await
    }
}

impl Body {
    /// Reads a body of at most `limit` bytes; `setting` is the configuration key of the limit.
    pub(crate) async fn read(request: Request, limit: usize, setting: &str) -> Result<Self, ApiError> {
        let media_type = media_type(request.headers());
        if content_length_exceeds(request.headers(), limit) {
            discard(request).await;
            return Err(too_large(limit, setting));
        }
        let reading = Limited::new(request.into_body(), limit).collect();
        let collected = tokio::time::timeout(BODY_TIMEOUT, reading)
            .await
            .map_err(|_| ApiError::bad_request("timeout: the request body was not received within 60 s"))?
            .map_err(|error| match error.downcast_ref::<LengthLimitError>() {
                Some(_) => too_large(limit, setting),
                None => {
                    ApiError::bad_request("the request body is incomplete: the connection was closed early")
                }
            })?;
        Ok(Self { bytes: collected.to_bytes(), media_type })
    }
}

/// Reads and discards a body, within bounds: many clients read the response only after sending everything, and would
/// otherwise see a broken connection. Clients that send `Expect` wait for the response first.
pub(crate) async fn discard(request: Request) {
    if request.headers().contains_key(header::EXPECT) {
        return;
    }
    let rest = Limited::new(request.into_body(), MAX_DISCARDED_BYTES);
    let mut rest = std::pin::pin!(rest);
    let reading = async { while let Some(Ok(_)) = rest.frame().await {} };
    // A slower client may miss the response.
    let _ = tokio::time::timeout(DISCARD_TIMEOUT, reading).await;
}

/// Returns whether the declared length of a body exceeds a limit.
pub(crate) fn content_length_exceeds(headers: &HeaderMap, limit: usize) -> bool {
    content_length(headers).is_some_and(|length| length > limit)
}

/// Returns whether JSON is nested deeper than the parser accepts.
fn is_too_deep(json: &[u8]) -> bool {
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return true;
        }
    }
    false
}

fn content_length(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn too_large(limit: usize, setting: &str) -> ApiError {
    let message = format!("the request body exceeds the limit of {limit} bytes (`{setting}`)");
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
            let position = error.valid_up_to();
            ApiError::bad_request(format!("the request body is not valid UTF-8 at byte {position}"))
        })
    }

    /// Parses the body as a JSON object, whatever its declared type: `curl -d` declares a form.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        // Serde would read an array as the fields in their order of declaration.
        if self.bytes.trim_ascii_start().starts_with(b"[") {
            return Err(ApiError::bad_request("invalid request body: expected an object, not an array"));
        }
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let message = if error.is_data() {
                self.data_error::<T>(&error)
            } else if is_too_deep(&self.bytes) {
                format!("the request body exceeds the nesting limit of {MAX_DEPTH} levels")
            } else {
                format!("the request body is not valid JSON: {error}")
            };
            ApiError::bad_request(message)
        })
    }

    /// Names the invalid field. The body is parsed again to track the path, which the fast path skips.
    fn data_error<T: DeserializeOwned>(&self, error: &serde_json::Error) -> String {
        let mut reader = serde_json::Deserializer::from_slice(&self.bytes);
        let path = serde_path_to_error::deserialize::<_, T>(&mut reader).err();
        let path = path.map(|error| error.path().to_string()).filter(|path| path != ".");
        let field = path.map_or_else(String::new, |path| format!("`{}`: ", excerpt(&path, 120)));
        let error = error.to_string().replace("expected a sequence", "expected a list, such as `[…]`");
        format!("invalid request body: {field}{error}")
    }

    /// Parses the body as JSON; an empty body is the default value.
    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, ApiError> {
        if self.bytes.iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { self.json() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, expecting = "an object")]
    struct Sample {
        enabled: bool,
        inner: Inner,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default, expecting = "an object")]
    struct Inner {
        names: Vec<String>,
    }

    #[test]
    fn an_invalid_field_is_named() {
        for (text, expected) in [
            (r#"{"enabled": null}"#, "`enabled`: invalid type: null, expected a boolean at line 1"),
            (
                r#"{"inner": {"names": ["a", 1]}}"#,
                "`inner.names[1]`: invalid type: integer `1`, expected a string",
            ),
            (r#"{"inner": 1}"#, "`inner`: invalid type: integer `1`, expected an object at line 1"),
            ("1", "invalid type: integer `1`, expected an object at line 1"),
            (" [true]", "expected an object, not an array"),
        ] {
            let body = Body { bytes: Bytes::from(text), media_type: String::new() };
            let error = body.json::<Sample>().map(|read| (read.enabled, read.inner.names)).unwrap_err();
            let expected = format!("invalid request body: {expected}");
            assert!(error.0.message.starts_with(&expected), "{}\n{expected}", error.0.message);
        }
    }

    #[test]
    fn the_nesting_limit_is_that_of_the_parser() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        for depth in [MAX_DEPTH, MAX_DEPTH + 1] {
            let text = nested(depth);
            let parsed = serde_json::from_str::<serde_json::Value>(&text);
            assert_eq!(
                (parsed.is_err(), is_too_deep(text.as_bytes())),
                (depth > MAX_DEPTH, depth > MAX_DEPTH)
            );
        }
        assert!(!is_too_deep(format!(r#"["{}\"{}"]"#, "[".repeat(200), "{".repeat(200)).as_bytes()));
    }
}
