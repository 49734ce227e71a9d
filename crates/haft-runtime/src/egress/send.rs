//! Sending a request through the guard, redirects included.

use std::error::Error;
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use haft_core::problem::excerpt;
use http::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_LENGTH, CONTENT_TYPE, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use url::Url;

use super::guard::{Egress, EgressError};

/// How many redirects are followed.
const MAX_REDIRECTS: usize = 5;

/// The only headers that follow a redirect to another origin: any other may carry a credential, whatever its
/// name, be it written in the definition or taken from an argument.
const CARRIED: [HeaderName; 4] = [ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, USER_AGENT];

/// One request on its way out.
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
    /// Statuses that are answers to the caller even where they would redirect.
    pub wanted: Vec<u16>,
}

/// Where a request was sent on to. Errors name that place: it is the one that failed.
#[derive(Default)]
pub(crate) struct Trail(Mutex<Option<Url>>);

impl Trail {
    fn set(&self, url: Option<Url>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = url;
    }

    /// Adds to the words for a request where it was redirected to, without what may hold a key.
    pub(crate) fn shown(&self, request: String) -> String {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(mut url) = last else { return request };
        url.set_query(None);
        url.set_fragment(None);
        // Neither can fail for the URLs that are sent on to.
        let _ = (url.set_username(""), url.set_password(None));
        format!("{request}, redirected to {}", excerpt(url.as_str(), 200))
    }
}

/// Says why no answer came.
#[derive(Debug)]
pub enum SendError {
    /// The guard refused a destination.
    Refused(EgressError),
    /// No connection came to be: nothing was sent.
    Connect(String),
    /// The connection broke, or the answer was not HTTP.
    Broken(String),
    /// There were too many redirects, or one that leads nowhere.
    Redirect(String),
}

impl Egress {
    /// Sends a request and returns the answer to it, or to what it was redirected to.
    ///
    /// Every hop is checked. Across origins only a few harmless headers are kept, and a body does not follow.
    pub async fn send(&self, request: OutgoingRequest) -> Result<reqwest::Response, SendError> {
        self.send_along(request, &Trail::default()).await
    }

    /// Sends a request and notes where it was redirected to.
    pub(crate) async fn send_along(
        &self,
        mut request: OutgoingRequest,
        trail: &Trail,
    ) -> Result<reqwest::Response, SendError> {
        trail.set(None);
        for hop in 0..=MAX_REDIRECTS {
            let refused = |refused: EgressError| SendError::Refused(refused.by_redirect(hop > 0));
            self.check(&request.url).map_err(refused)?;
            let response = self.once(&request).await.map_err(|error| match error {
                SendError::Refused(why) => refused(why),
                // Something was sent already: to the one who redirected.
                SendError::Connect(why) if hop > 0 => SendError::Broken(why),
                other => other,
            })?;
            let status = response.status();
            if !is_redirect(status) || request.wanted.contains(&status.as_u16()) {
                return Ok(response);
            }
            let Some(location) = response.headers().get(LOCATION) else { return Ok(response) };
            let next = location.to_str().ok().and_then(|text| request.url.join(text).ok());
            let Some(next) = next else {
                let shown = excerpt(&String::from_utf8_lossy(location.as_bytes()), 100);
                return Err(SendError::Redirect(format!(
                    "a redirect leads to `{shown}`, which is not a URL"
                )));
            };
            trail.set(Some(next.clone()));
            request = follow(request, status, next)?;
        }
        Err(SendError::Redirect(format!("more than {MAX_REDIRECTS} redirects")))
    }

    async fn once(&self, request: &OutgoingRequest) -> Result<reqwest::Response, SendError> {
        let body = request.body.as_ref().filter(|body| !body.is_empty());
        let mut headers = request.headers.clone();
        if body.is_none() && matches!(request.method, Method::POST | Method::PUT | Method::PATCH) {
            // Some servers refuse those without a length, and the client beneath does not write that of nothing.
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let client = self.client(&request.url);
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

/// Makes the request that follows a redirect.
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
            return Err(SendError::Refused(EgressError::body(&next).by_redirect(true)));
        }
        let before = std::mem::take(&mut request.headers);
        let carried = before.into_iter().filter_map(|(name, value)| Some((name?, value)));
        request.headers =
            carried.filter(|(name, value)| CARRIED.contains(name) && !value.is_sensitive()).collect();
    }
    request.url = next;
    Ok(request)
}

fn classify(error: &reqwest::Error) -> SendError {
    let mut at: Option<&(dyn Error + 'static)> = Some(error);
    let mut innermost = error.to_string();
    while let Some(inner) = at {
        if let Some(refused) = inner.downcast_ref::<EgressError>() {
            return SendError::Refused(refused.clone());
        }
        innermost = inner.to_string();
        at = inner.source();
    }
    let why = excerpt(&innermost, 200);
    if error.is_connect() { SendError::Connect(why) } else { SendError::Broken(why) }
}
