//! Request bodies: read whole, bounded, with errors that say where.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{FromRequest, Request};
use axum::http::{HeaderMap, header};
use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
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
        if claims_more(request.headers(), most) {
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
pub(crate) async fn discard(request: Request) {
    if request.headers().contains_key(header::EXPECT) {
        return;
    }
    let rest = Limited::new(request.into_body(), DISCARDED_BYTES);
    let mut rest = std::pin::pin!(rest);
    let reading = async { while let Some(Ok(_)) = rest.frame().await {} };
    // Whoever is slower than that gets the answer, or not.
    let _ = tokio::time::timeout(DISCARD_TIME, reading).await;
}

/// Tells whether a body of more than so many bytes is announced.
pub(crate) fn claims_more(headers: &HeaderMap, most: usize) -> bool {
    claimed_length(headers).is_some_and(|length| length > most)
}

/// Says "an object" in the place of a type of this program, which means nothing to who sent the body.
fn without_types(message: &str) -> String {
    for kind in ["expected struct ", "expected internally tagged enum "] {
        if let Some((before, rest)) = message.split_once(kind) {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            return format!("{before}expected an object{rest}");
        }
    }
    message.to_owned()
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

    /// Reads the body as a JSON object, whatever type it claims: `curl -d` says it is a form.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, ApiError> {
        // A list would be taken for the fields in the order in which they happen to be declared.
        if self.bytes.trim_ascii_start().starts_with(b"[") {
            let message = "the body is not as expected: invalid type: sequence, expected an object";
            return Err(ApiError::bad_request(message));
        }
        serde_json::from_slice(&self.bytes).map_err(|error| {
            let message = if error.is_data() {
                self.misfit::<T>(&error)
            } else if error.to_string().starts_with(TOO_DEEP) {
                "the body is nested deeper than 128 levels, the most that are read".to_owned()
            } else {
                format!("the body is not valid JSON: {error}")
            };
            ApiError::bad_request(message)
        })
    }

    /// Says which field does not fit. The body is read once more, with the path, which the quick way does not keep.
    fn misfit<T: DeserializeOwned>(&self, error: &serde_json::Error) -> String {
        let mut reader = serde_json::Deserializer::from_slice(&self.bytes);
        let path = serde_path_to_error::deserialize::<_, T>(&mut reader).err();
        let path = path.map(|error| error.path().to_string()).filter(|path| path != ".");
        let field = path.map_or_else(String::new, |path| format!("`{}`: ", excerpt(&path, 120)));
        format!("the body is not as expected: {field}{}", without_types(&error.to_string()))
    }

    /// Reads the body as JSON; an empty one is the default.
    pub(crate) fn json_or_default<T: DeserializeOwned + Default>(&self) -> Result<T, ApiError> {
        if self.bytes.iter().all(u8::is_ascii_whitespace) { Ok(T::default()) } else { self.json() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Wanted {
        enabled: bool,
        inner: Inner,
    }

    #[derive(Debug, Default, serde::Deserialize)]
    #[serde(default)]
    struct Inner {
        names: Vec<String>,
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (text, expected) in [
            (r#"{"enabled": null}"#, "`enabled`: invalid type: null, expected a boolean at line 1"),
            (
                r#"{"inner": {"names": ["a", 1]}}"#,
                "`inner.names[1]`: invalid type: integer `1`, expected a string",
            ),
            (r#"{"inner": 1}"#, "`inner`: invalid type: integer `1`, expected an object at line 1"),
            ("1", "invalid type: integer `1`, expected an object at line 1"),
            (" [true]", "invalid type: sequence, expected an object"),
        ] {
            let body = Body { bytes: Bytes::from(text), media_type: String::new() };
            let error = body.json::<Wanted>().map(|read| (read.enabled, read.inner.names)).unwrap_err();
            let expected = format!("the body is not as expected: {expected}");
            assert!(error.message.starts_with(&expected), "{}\n{expected}", error.message);
        }
    }
}
