//! One bounded exchange, for tools that are written in Rust: through the guard, within the time of the call.

use haft_core::executor::CallContext;
use haft_core::outcome::CallError;
use http::{HeaderMap, StatusCode};
use url::Url;

use super::failure::{self, Safety};
use super::response::{self, Answer};
use crate::egress::{Egress, OutgoingRequest, Trail};

/// How much of a page is looked at for the charset that it names itself.
const HEAD_BYTES: usize = 1024;

/// How much of an error answer is told.
const ERROR_BYTES: usize = 8 * 1024;

/// What becomes of an answer that is larger than wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverflowPolicy {
    /// The exchange fails.
    Fail,
    /// The rest is left unread.
    Cut,
}

/// An answer, whatever its status.
pub struct Exchange {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// Where the answer came from, redirects followed.
    pub url: Url,
    /// The body, decompressed.
    pub bytes: Vec<u8>,
    /// Whether there was more of it.
    pub truncated: bool,
    content_type: String,
    shown: String,
}

impl Exchange {
    /// Makes the error of a status that is no success, without the secrets that the call has seen.
    pub fn to_error(&self, call: &CallContext) -> CallError {
        let start = self.bytes.get(..ERROR_BYTES).unwrap_or(&self.bytes).to_vec();
        let answer = Answer { content_type: self.content_type.clone(), bytes: start, bodiless: false };
        failure::status_error(self.status, &answer, &self.shown, &call.exposed())
    }

    /// Tells whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        matches!(self.status.as_u16(), 429 | 502 | 503 | 504)
    }

    /// Returns the media type without its parameters, in lower case.
    pub fn media_type(&self) -> &str {
        response::media(&self.content_type)
    }

    /// Tells whether the answer says that it is JSON.
    pub fn is_json(&self) -> bool {
        response::is_json(&self.content_type)
    }

    /// Tells whether the answer says that it is a page.
    pub fn is_html(&self) -> bool {
        response::is_html(&self.content_type)
    }

    /// Tells whether the answer can be read as a text.
    pub fn is_text(&self) -> bool {
        self.is_json()
            || self.is_html()
            || response::is_text(&self.content_type)
            || (std::str::from_utf8(&self.bytes).is_ok() && !self.bytes.contains(&0))
    }

    /// Decodes the body: by its byte order mark, by the header, by what a page says of itself, as UTF-8.
    pub fn text(&self) -> String {
        let head = self.bytes.get(..HEAD_BYTES).unwrap_or(&self.bytes);
        let named = || self.is_html().then(|| named_charset(head)).flatten();
        let encoding = response::named_charset(&self.content_type).or_else(named);
        encoding.unwrap_or(encoding_rs::UTF_8).decode(&self.bytes).0.into_owned()
    }
}

/// Finds `charset=NAME` in the head of a page, as a browser does before it parses.
fn named_charset(head: &[u8]) -> Option<&'static encoding_rs::Encoding> {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let (_, rest) = head.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label = rest.split(['"', '\'', ' ', ';', '>', '/']).next()?;
    encoding_rs::Encoding::for_label(label.as_bytes())
}

/// Sends a request and reads the answer, up to `most` bytes of it. A status that is no success is an answer too.
pub async fn exchange(
    egress: &Egress,
    call: &CallContext,
    request: OutgoingRequest,
    most: u64,
    excess: OverflowPolicy,
) -> Result<Exchange, CallError> {
    let again = request.method.is_idempotent();
    let (safety, shown) = (Safety { unsent: true, sent: again }, shown(&request));
    let trail = Trail::default();
    let shown = || trail.shown(shown.clone());
    let work = async {
        let sent = egress.send_along(request, &trail).await;
        let mut answer = sent.map_err(|error| failure::send_failure(&error, &shown(), safety))?;
        let (content_type, headers) = (response::content_type(&answer), answer.headers().clone());
        let (bytes, truncated) = match excess {
            OverflowPolicy::Cut => response::read_part(&mut answer, most).await,
            OverflowPolicy::Fail => response::read(&mut answer, most).await.map(|bytes| (bytes, false)),
        }
        .map_err(|error| failure::body_failure(&error, &shown(), most, safety))?;
        let (status, url) = (answer.status(), answer.url().clone());
        Ok(Exchange { status, headers, url, bytes, truncated, content_type, shown: shown() })
    };
    tokio::time::timeout_at(call.deadline.into(), work)
        .await
        .unwrap_or_else(|_| Err(failure::too_late(&shown(), safety)))
}

/// A request for logs and errors: without its query, which may hold a key.
fn shown(request: &OutgoingRequest) -> String {
    let mut url = request.url.clone();
    url.set_query(None);
    url.set_fragment(None);
    format!("{} {}", request.method, haft_core::problem::excerpt(url.as_str(), 200))
}
