//! Reading an answer: bounded, charset-aware, as JSON or text.

use std::error::Error;
use std::io;
use std::time::Duration;

use encoding_rs::{Encoding, UTF_8};
use haft_core::implementation::ResponseEncoding;
use haft_core::outcome::{CallError, ErrorCode};
use haft_core::problem::excerpt;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use serde_json::Value;

use super::extract::{self, Extract};

/// How the answer of a request becomes a value.
pub(super) struct Reader {
    pub(super) encoding: Option<ResponseEncoding>,
    pub(super) extract: Option<Extract>,
}

/// An answer that was read to its end.
pub(super) struct Answer {
    pub(super) content_type: String,
    pub(super) bytes: Vec<u8>,
    /// Whether the answer cannot have a body, by its status or the method.
    pub(super) bodiless: bool,
}

/// Says why a body could not be read.
#[derive(Debug)]
pub(super) enum BodyError {
    TooLarge,
    /// Its compression or framing is not valid.
    Garbled(String),
    /// It is compressed in a way that was not offered.
    Packed(String),
    /// The connection broke.
    Broken(String),
}

/// Returns the content type of an answer.
pub(super) fn content_type(response: &reqwest::Response) -> String {
    let value = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

/// Refuses a body that is still compressed: what was offered is unpacked by now, and its header is gone.
fn unpacked(response: &reqwest::Response) -> Result<(), BodyError> {
    let headers = response.headers().get_all(CONTENT_ENCODING).iter();
    let mut names = headers.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    let is_packed = |name: &String| !name.is_empty() && !name.eq_ignore_ascii_case("identity");
    names.find(is_packed).map_or(Ok(()), |name| Err(BodyError::Packed(excerpt(&name, 40))))
}

/// Reads a body as it comes in (and is decompressed), and stops where it passes the limit.
pub(super) async fn read(response: &mut reqwest::Response, limit: u64) -> Result<Vec<u8>, BodyError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let hint = response.content_length().and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
    if hint > limit {
        return Err(BodyError::TooLarge);
    }
    let mut bytes = Vec::with_capacity(hint.min(64 * 1024));
    while let Some(chunk) = response.chunk().await.map_err(|error| body_error(&error.without_url()))? {
        unpacked(response)?;
        if bytes.len() + chunk.len() > limit {
            return Err(BodyError::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Reads a body up to the limit; tells whether there was more.
pub(super) async fn read_part(
    response: &mut reqwest::Response,
    limit: u64,
) -> Result<(Vec<u8>, bool), BodyError> {
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| body_error(&error.without_url()))? {
        unpacked(response)?;
        let room = limit.saturating_sub(bytes.len());
        bytes.extend(chunk.iter().take(room));
        if chunk.len() > room {
            return Ok((bytes, true));
        }
    }
    Ok((bytes, false))
}

/// Reads the beginning of a body, whatever happens after it, and does not wait long for it.
pub(super) async fn read_start(response: &mut reqwest::Response, limit: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    if unpacked(response).is_err() {
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
    // What came so far is enough to show.
    let _ = tokio::time::timeout(Duration::from_secs(1), reading).await;
    bytes
}

fn body_error(error: &reqwest::Error) -> BodyError {
    let mut innermost: &(dyn Error + 'static) = error;
    let mut garbled = false;
    while let Some(inner) = innermost.source() {
        innermost = inner;
        let kind = inner.downcast_ref::<io::Error>().map(io::Error::kind);
        garbled |= matches!(kind, Some(io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput));
    }
    let why = excerpt(&innermost.to_string(), 200);
    if garbled { BodyError::Garbled(why) } else { BodyError::Broken(why) }
}

impl Reader {
    /// Turns an answer to a value.
    pub(super) fn value(&self, answer: &Answer) -> Result<Value, CallError> {
        let found = match &self.extract {
            Some(Extract::Path(path)) => extract::by_path(path, &json(answer)?).map_err(|_| {
                invalid(format!("the answer is too large for `{}`", excerpt(path.as_str(), 100)))
            })?,
            Some(Extract::Pattern(pattern)) => extract::by_pattern(pattern, &text(answer)),
            None => return self.whole(answer),
        };
        found.ok_or_else(|| {
            let expression = self.extract.as_ref().map(Extract::text).unwrap_or_default();
            invalid(format!("`{}` found nothing in the answer", excerpt(expression, 100)))
        })
    }

    fn whole(&self, answer: &Answer) -> Result<Value, CallError> {
        if answer.bodiless {
            return Ok(Value::Null);
        }
        match self.encoding {
            Some(ResponseEncoding::Json) => json(answer),
            Some(ResponseEncoding::Text) => Ok(Value::String(text(answer))),
            None if answer.bytes.is_empty() => Ok(Value::Null),
            None if is_json(&answer.content_type) => json(answer),
            None if is_text(&answer.content_type) || std::str::from_utf8(&answer.bytes).is_ok() => {
                Ok(Value::String(text(answer)))
            }
            None => {
                let kind = excerpt(&answer.content_type, 60);
                Err(invalid(format!("the answer is binary (`{kind}`); only JSON and text are read")))
            }
        }
    }
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

/// Returns the charset that a content type names, where it is known.
pub(super) fn named_charset(content_type: &str) -> Option<&'static Encoding> {
    let label = content_type.split(';').skip(1).find_map(|part| part.trim().strip_prefix("charset="))?;
    Encoding::for_label(label.trim_matches(['"', '\'', ' ']).as_bytes())
}

fn charset(content_type: &str) -> &'static Encoding {
    named_charset(content_type).unwrap_or(UTF_8)
}

/// Decodes as the content type says; what is not valid becomes U+FFFD.
pub(super) fn text(answer: &Answer) -> String {
    charset(&answer.content_type).decode(&answer.bytes).0.into_owned()
}

/// Parses JSON; the parser refuses more than 128 levels.
fn json(answer: &Answer) -> Result<Value, CallError> {
    if answer.bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(invalid("the answer is empty, but JSON was expected".to_owned()));
    }
    let decoded = charset(&answer.content_type).decode(&answer.bytes).0;
    serde_json::from_str(&decoded).map_err(|error| {
        let why = error.to_string();
        if why.starts_with("recursion limit exceeded") {
            return invalid("the answer is nested deeper than 128 levels, the most that are read".to_owned());
        }
        invalid(format!("the answer is not valid JSON: {}", excerpt(&why, 200)))
    })
}
