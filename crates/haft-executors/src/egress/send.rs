//! Sends requests through the guard and follows redirects.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use haft_core::problem::excerpt;
use http::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use url::Url;

use super::guard::{Egress, EgressError};

/// The maximum number of redirects.
const MAX_REDIRECTS: usize = 5;

/// The only headers that are kept on a redirect to another origin: any other header may contain a credential.
const SAFE_HEADERS: [HeaderName; 4] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];

/// An outgoing request.
#[derive(Clone)]
pub struct OutgoingRequest {
    /// The method.
    pub method: Method,
    /// The destination.
    pub url: Url,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Option<Bytes>,
    /// Redirect statuses that are returned to the caller instead of being followed.
    pub accepted_statuses: Vec<u16>,
}

/// The URL to which a request was redirected last, for errors.
#[derive(Default)]
pub(crate) struct RedirectTrail(Mutex<Option<Url>>);

impl RedirectTrail {
    fn set(&self, url: Option<Url>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// Appends the redirect target to the description of a request, without parts that may contain a key.
    pub(crate) fn shown(&self, request: String) -> String {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut url) = last else { return request };
        url.set_query(None);
        url.set_fragment(None);
        // Neither can fail for HTTP URLs.
        let _ = (url.set_username(""), url.set_password(None));
        format!("{request}, redirected to {}", excerpt(url.as_str(), 200))
    }
}

/// Why there is no response.
#[derive(Debug)]
pub enum SendError {
    /// The guard denied the destination.
    Denied(EgressError),
    /// The connection failed: nothing was sent.
    Connect(String),
    /// The connection was lost, or the response was not HTTP.
    Disconnected(String),
    /// There were too many redirects, or an invalid one.
    Redirect(String),
}

impl Egress {
    /// Sends a request, follows redirects, and returns the response.
    ///
    /// Every hop is checked. Across origins only a few safe headers are kept, and a body is not sent again.
    pub async fn send(&self, request: OutgoingRequest) -> Result<reqwest::Response, SendError> {
        self.send_along(request, &RedirectTrail::default()).await
    }

    /// Sends a request and records redirects in `trail`.
    pub(crate) async fn send_along(
        &self,
        mut request: OutgoingRequest,
        trail: &RedirectTrail,
    ) -> Result<reqwest::Response, SendError> {
        trail.set(None);
        for hop in 0..=MAX_REDIRECTS {
            let denied = |error: EgressError| SendError::Denied(error.by_redirect(hop > 0));
            self.check(&request.url).map_err(denied)?;
            let response = self.send_once(&request).await.map_err(|error| match error {
                SendError::Denied(error) => denied(error),
                // The request was already sent to the redirecting server.
                SendError::Connect(reason) if hop > 0 => SendError::Disconnected(reason),
                other => other,
            })?;
            let status = response.status();
            if !is_redirect(status) || request.accepted_statuses.contains(&status.as_u16()) {
                return Ok(response);
            }
            let Some(location) = response.headers().get(LOCATION) else { return Ok(response) };
            let next = location.to_str().ok().and_then(|text| request.url.join(text).ok());
            let Some(next) = next else {
                let shown = excerpt(&String::from_utf8_lossy(location.as_bytes()), 100);
                return Err(SendError::Redirect(format!("invalid redirect to `{shown}`: not a URL")));
            };
            trail.set(Some(next.clone()));
            request = follow(request, status, next)?;
        }
        Err(SendError::Redirect(format!("redirect limit ({MAX_REDIRECTS}) exceeded")))
    }

    async fn send_once(&self, request: &OutgoingRequest) -> Result<reqwest::Response, SendError> {
        let body = request.body.as_ref().filter(|body| !body.is_empty());
        let mut headers = request.headers.clone();
        if body.is_none() && matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
            // Some servers reject these methods without a length, and reqwest omits it for an empty body.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let client = self.client(&request.url).map_err(SendError::Connect)?;
        let mut builder = client.request(request.method.clone(), request.url.clone()).headers(headers);
        if let Some(body) = body {
            builder = builder.body(body.clone());
        }
        builder.send().await.map_err(|error| classify(&error.without_url()))
    }
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Returns the next request after a redirect.
fn follow(mut request: OutgoingRequest, status: StatusCode, next: Url) -> Result<OutgoingRequest, SendError> {
    let becomes_get = match status.as_u16() {
        303 => request.method != Method::HEAD,
        301 | 302 => request.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        request.method = Method::GET;
        request.body = None;
        request.headers.remove(CONTENT_TYPE);
        request.headers.remove(CONTENT_LENGTH);
    }
    if next.origin() != request.url.origin() {
        if request.body.as_ref().is_some_and(|body| !body.is_empty()) {
            return Err(SendError::Denied(EgressError::body(&next).by_redirect(true)));
        }
        let before = std::mem::take(&mut request.headers);
        let kept = before.into_iter().filter_map(|(name, value)| Some((name?, value)));
        request.headers =
            kept.filter(|(name, value)| SAFE_HEADERS.contains(name) && !value.is_sensitive()).collect();
    }
    request.url = next;
    Ok(request)
}

fn classify(error: &reqwest::Error) -> SendError {
    let mut at: Option<&(dyn Error + 'static)> = Some(error);
    let mut innermost = error.to_string();
    while let Some(inner) = at {
        if let Some(denied) = inner.downcast_ref::<EgressError>() {
            return SendError::Denied(denied.clone());
        }
        innermost = inner.to_string();
        at = inner.source();
    }
    let reason = excerpt(&innermost, 200);
    if error.is_connect() { SendError::Connect(reason) } else { SendError::Disconnected(reason) }
}
