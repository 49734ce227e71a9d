//! Reads a response: with a size limit, by its charset, as JSON or text.

use std::error::Error;
use std::io;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use encoding_rs::{Encoding, UTF_8};
use haft_core::implementation::ResponseEncoding;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::Value;

use super::extract::{self, Extract};

/// The maximum nesting depth of JSON, which is also what the parser supports.
const MAX_DEPTH: usize = 127;

/// The number of GraphQL errors in a message.
const MAX_GRAPHQL_ERRORS: usize = 5;

/// The images that models and browsers read.
const IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// Converts a response to a value.
pub(super) struct ResponseReader {
    pub(super) encoding: Option<ResponseEncoding>,
    pub(super) extract: Option<Extract>,
}

/// A response that was read completely.
pub(super) struct ResponseBody {
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// Whether the response has no body because of its status or the method.
    pub(super) bodiless: bool,
}

/// Why a body could not be read.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    /// Its compression or framing is invalid.
    Corrupt(String),
    /// It has an unsupported compression.
    UnsupportedEncoding(String),
    /// The connection was lost.
    Disconnected(String),
}

/// Returns the content type of a response.
pub(super) fn content_type(response: &reqwest::Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

/// Rejects a body that is still compressed: supported encodings are decoded, and their header removed, by now.
fn require_decoded(response: &reqwest::Response) -> Result<(), BodyError> {
    let headers = response.headers().get_all(CONTENT_ENCODING).iter();
    let mut names = headers.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let is_encoded = |name: &String| !name.is_empty() && !name.eq_ignore_ascii_case("identity");
    names.find(is_encoded).map_or(Ok(()), |name| Err(BodyError::UnsupportedEncoding(excerpt(&name, 40))))
}

/// Reads a body, decompressed, and stops when it exceeds the limit.
pub(super) async fn read(response: &mut reqwest::Response, limit: u64) -> Result<Vec<u8>, BodyError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let hint = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    if hint > limit {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(hint.min(64 * 1024));
    while let Some(chunk) = response.chunk().await.map_err(|error| body_error(&error.without_url()))? {
        require_decoded(response)?;
        if bytes.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads a body up to the limit; returns whether there was more.
pub(super) async fn read_part(
    response: &mut reqwest::Response,
    limit: u64,
) -> Result<(Vec<u8>, bool), BodyError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| body_error(&error.without_url()))? {
        require_decoded(response)?;
        let room = limit.saturating_sub(bytes.len());
        bytes.extend(chunk.iter().take(room));
        if chunk.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// Reads the beginning of a body, with a short timeout; errors end it.
pub(super) async fn read_start(response: &mut reqwest::Response, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if require_decoded(response).is_err() {
        return bytes;
    }
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = limit.saturating_sub(bytes.len());
            bytes.extend(chunk.iter().take(room));
            if chunk.len() >= room {
                break;
            }
        }
    };
    // What was read so far is enough for an excerpt.
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    bytes
}

fn body_error(error: &reqwest::Error) -> BodyError {
    let mut innermost: &(dyn Error + 'static) = error;
    let mut corrupt = false;
    while let Some(inner) = innermost.source() {
        innermost = inner;
        let kind = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        corrupt |= matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput));
    }
    let reason = excerpt(&innermost.to_string(), 200);
    if corrupt { BodyError::Corrupt(reason) } else { BodyError::Disconnected(reason) }
}

impl ResponseReader {
    /// Converts a response to a value.
    pub(super) fn value(&self, body: &ResponseBody) -> Result<Value, CallError> {
        if self.encoding == Some(ResponseEncoding::Graphql) {
            return self.graphql(body);
        }
        let found = match &self.extract {
            Some(Extract::Path(path)) => extract::by_path(path, &json(body)?).map_err(|_| {
                invalid(format!("the response is too large for `{}`", excerpt(path.as_str(), 100)))
            })?,
            Some(Extract::Pattern(pattern)) => extract::by_pattern(pattern, &text(body)),
            None => return self.whole(body),
        };
        found.ok_or_else(|| {
            let expression = self.extract.as_ref().map(Extract::text).unwrap_or_default();
            invalid(format!("`{}` matched nothing in the response", excerpt(expression, 100)))
        })
    }

    fn whole(&self, body: &ResponseBody) -> Result<Value, CallError> {
        if body.bodiless {
            return Ok(Value::Null);
        }
        match self.encoding {
            Some(ResponseEncoding::Json | ResponseEncoding::Graphql) => json(body),
            Some(ResponseEncoding::Text) => Ok(Value::String(text(body))),
            None if body.bytes.is_empty() => Ok(Value::Null),
            None if is_json(&body.content_type) => json(body),
            None if is_text(&body.content_type) || std::str::from_utf8(&body.bytes).is_ok() => {
                Ok(Value::String(text(body)))
            }
            None => Ok(binary(body)),
        }
    }

    /// Returns the `data` of a GraphQL response, or the part that `extract` selects of it. Errors fail the call, also next
    /// to partial data: a model would take the rest for the whole.
    fn graphql(&self, body: &ResponseBody) -> Result<Value, CallError> {
        let mut root = json(body)?;
        let errors = root.get("errors").and_then(Value::as_array).filter(|errors| !errors.is_empty());
        if let Some(errors) = errors {
            let messages = errors.iter().take(MAX_GRAPHQL_ERRORS).map(|error| {
                let message = error.get("message").and_then(Value::as_str).unwrap_or("unknown error");
                excerpt(message, 300)
            });
            let more = errors.len().saturating_sub(MAX_GRAPHQL_ERRORS);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let messages = messages.collect::<Vec<_>>().join("; ");
            return Err(CallError::new(
                ErrorCode::ExecutionFailed,
                format!("the GraphQL server reports: {messages}{more}"),
            ));
        }
        let data = root.get_mut("data").map(Value::take);
        let data = data.ok_or_else(|| invalid("the GraphQL response has no `data`".to_owned()))?;
        let Some(Extract::Path(path)) = &self.extract else { return Ok(data) };
        let found = extract::by_path(path, &data).map_err(|_| {
            invalid(format!("the response is too large for `{}`", excerpt(path.as_str(), 100)))
        })?;
        found.ok_or_else(|| {
            invalid(format!("`{}` matched nothing in the response", excerpt(path.as_str(), 100)))
        })
    }
}

/// Returns a binary body: an image as a content block, which models see; any other as a file.
fn binary(body: &ResponseBody) -> Value {
    let data = STANDARD.encode(&body.bytes);
    let media_type = media(&body.content_type);
    if IMAGES.contains(&media_type) {
        return serde_json::json!([{"type": "image", "data": data, "mimeType": media_type}]);
    }
    let media_type = if media_type.is_empty() { "application/octet-stream" } else { media_type };
    serde_json::json!({"media_type": excerpt(media_type, 100), "size": body.bytes.len(), "base64": data})
}

fn invalid(message: String) -> CallError {
    CallError::new(ErrorCode::InvalidResponse, message)
}

pub(super) fn media(content_type: &str) -> &str {
    content_type.split(';').next().unwrap_or_default().trim()
}

pub(super) fn is_json(content_type: &str) -> bool {
    let media = media(content_type);
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

pub(super) fn is_html(content_type: &str) -> bool {
    matches!(media(content_type), "text/html" | "application/xhtml+xml")
}

pub(super) fn is_text(content_type: &str) -> bool {
    let media = media(content_type);
    media.starts_with("text/") || media.ends_with("xml") || content_type.contains("charset=")
}

/// Returns the charset of a content type, if it is known.
pub(super) fn named_charset(content_type: &str) -> Option<&'static Encoding> {
    let label = content_type.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="))?;
    Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes())
}

fn charset(content_type: &str) -> &'static Encoding {
    named_charset(content_type).unwrap_or(UTF_8)
}

/// Decodes a body by its charset; invalid sequences become U+FFFD.
pub(super) fn text(body: &ResponseBody) -> String {
    charset(&body.content_type).decode(&body.bytes).0.into_owned()
}

/// Parses JSON with a limit on the nesting depth.
fn json(body: &ResponseBody) -> Result<Value, CallError> {
    if body.bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(invalid("the response is empty; expected JSON".to_owned()));
    }
    let decoded = charset(&body.content_type).decode(&body.bytes).0;
    if depth(&decoded) > MAX_DEPTH {
        return Err(invalid(format!("the nesting depth of the response exceeds the limit of {MAX_DEPTH}")));
    }
    serde_json::from_str(&decoded).map_err(|error| {
        invalid(format!("the response is not valid JSON: {}", excerpt(&error.to_string(), 200)))
    })
}

/// Returns the nesting depth of a JSON text.
fn depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let (mut in_string, mut escaped) = (false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_depth_of_a_text_ignores_brackets_in_strings() {
        for (text, expected) in [
            ("1", 0),
            ("[]", 1),
            (r#"{"a": [1, [2]], "b": []}"#, 3),
            (r#"["[[[", "\"[[", "\\"]"#, 1),
            ("]]]", 0),
        ] {
            assert_eq!(depth(text), expected, "{text}");
        }
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(serde_json::from_str::<Value>(&nested(MAX_DEPTH)).is_ok());
    }
}
