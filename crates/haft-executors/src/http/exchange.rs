//! One request with its response, for tools written in Rust: through the egress guard, within the deadline of the call.

use haft_core::executor::CallContext;
use haft_core::outcome::CallError;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::failure::{self, RetrySafety};
use super::response::{self, ResponseBody};
use crate::egress::{Egress, OutgoingRequest, RedirectTrail};

/// How much of an HTML page is searched for its charset.
const HEAD_BYTES: usize = 1024;

/// How much of an error response is reported.
const ERROR_BYTES: usize = 8 * 1024;

/// What happens if a response exceeds the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// The exchange fails.
    Fail,
    /// The rest is not read.
    Truncate,
}

/// A response with any status.
pub struct Exchange {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The URL of the response, after redirects.
    pub url: Url,
    /// The body, decompressed.
    pub bytes: Vec<u8>,
    /// Whether the body was truncated.
    pub truncated: bool,
    content_type: String,
    shown: String,
}

impl Exchange {
    /// Converts a status that is not a success to an error, with the secrets of the call redacted.
    pub fn to_error(&self, call: &CallContext) -> CallError {
        let start = self.bytes.get(..ERROR_BYTES).unwrap_or(&self.bytes).to_vec();
        let body = ResponseBody { content_type: self.content_type.clone(), bytes: start, bodiless: false };
        failure::status_error(self.status, &body, &self.shown, &call.exposed())
    }

    /// Returns whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.status.as_u16(), 429 | 502 | 503 | 504)
    }

    /// Returns the media type without its parameters, in lower case.
    pub fn media_type(&self) -> &str {
        response::media(&self.content_type)
    }

    /// Returns whether the content type is JSON.
    pub fn is_json(&self) -> bool {
        response::is_json(&self.content_type)
    }

    /// Returns whether the content type is HTML.
    pub fn is_html(&self) -> bool {
        response::is_html(&self.content_type)
    }

    /// Returns whether the body is text.
    pub fn is_text(&self) -> bool {
        self.is_json()
            || self.is_html()
            || response::is_text(&self.content_type)
            || (std::str::from_utf8(&self.bytes).is_ok() && !self.bytes.contains(&0))
    }

    /// Decodes the body: by its byte order mark, the header, the HTML head, or as UTF-8.
    pub fn text(&self) -> String {
        let head = self.bytes.get(..HEAD_BYTES).unwrap_or(&self.bytes);
        let in_head = || self.is_html().then(|| head_charset(head)).flatten();
        let encoding = response::named_charset(&self.content_type).or_else(in_head);
        encoding.unwrap_or(encoding_rs::UTF_8).decode(&self.bytes).0.into_owned()
    }
}

/// Returns the `charset=NAME` in the head of an HTML page, as a browser finds it before it parses.
fn head_charset(head: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, rest) = head.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = rest.split(['"', '\'', ' ', ';', '>', '/']).next()?;
    encoding_rs::Encoding::for_label(label.as_bytes())
}

/// Sends a request and reads up to `max_bytes` of the response. A status that is not a success is a response too.
pub async fn exchange(
    egress: &Egress,
    call: &CallContext,
    request: OutgoingRequest,
    max_bytes: u64,
    overflow: OverflowPolicy,
) -> Result<Exchange, CallError> {
    let idempotent = request.method.is_idempotent();
    let (safety, shown) = (RetrySafety { unsent: true, sent: idempotent }, shown(&request));
    let trail = RedirectTrail::default();
    let shown = || trail.shown(shown.clone());
    let work = async {
        let sent = egress.send_along(request, &trail).await;
        let mut response = sent.map_err(|error| failure::send_failure(&error, &shown(), safety))?;
        let (content_type, headers) = (response::content_type(&response), response.headers().clone());
        let (bytes, truncated) = match overflow {
            OverflowPolicy::Truncate => response::read_part(&mut response, max_bytes).await,
            OverflowPolicy::Fail => {
                response::read(&mut response, max_bytes).await.map(|bytes| (bytes, false))
            }
        }
        .map_err(|error| failure::body_failure(&error, &shown(), max_bytes, safety))?;
        let (status, url) = (response.status(), response.url().clone());
        Ok(Exchange { status, headers, url, bytes, truncated, content_type, shown: shown() })
    };
    tokio::time::timeout_at(call.deadline.into(), work)
        .await
        .unwrap_or_else(|_| Err(failure::call_timeout(&shown(), safety)))
}

/// Returns a request for logs and errors, without its query, which may contain a key.
fn shown(request: &OutgoingRequest) -> String {
    let mut url = request.url.clone();
    url.set_query(None);
    url.set_fragment(None);
    format!("{} {}", request.method, haft_core::problem::excerpt(url.as_str(), 200))
}
