//! The documents that describe applications (OAuth Client ID Metadata Documents): fetched from the URL that is the
//! `client_id`, through the egress guard, and kept for as long as their cache headers say. Other nodes fetch their own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::Timestamp;
use haft_executors::egress::{Egress, OutgoingRequest, SendError};
use haft_oauth::client_metadata::ClientMetadata;
use http::header::{ACCEPT, CACHE_CONTROL};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

/// The size limit of a document.
const MAX_BYTES: usize = 64 * 1024;
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long a document is kept at least and at most, and if it does not say.
const MIN_KEPT: Duration = Duration::from_mins(5);
const MAX_KEPT: Duration = Duration::from_hours(24);
const DEFAULT_KEPT: Duration = Duration::from_hours(1);
/// The most documents that are kept.
const MAX_DOCUMENTS: usize = 500;
/// Redirects, which are not followed: the document has to be where the `client_id` says.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// The documents of this node.
#[derive(Default)]
pub struct ClientDocuments(Mutex<HashMap<String, Kept>>);

struct Kept {
    metadata: Arc<ClientMetadata>,
    until: Timestamp,
}

/// There is no valid document.
#[derive(Debug, thiserror::Error)]
#[error("cannot read the description of the application at `{url}`: {reason}")]
pub struct DocumentError {
    url: String,
    reason: String,
}

impl ClientDocuments {
    /// Returns the description of an application, if it is kept.
    pub fn kept(&self, url: &Url, now: Timestamp) -> Option<Arc<ClientMetadata>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(url.as_str()).filter(|kept| now < kept.until).map(|kept| Arc::clone(&kept.metadata))
    }

    /// Fetches the description of an application.
    pub async fn fetch(
        &self,
        egress: &Egress,
        url: &Url,
        now: Timestamp,
    ) -> Result<Arc<ClientMetadata>, DocumentError> {
        let fetched = tokio::time::timeout(TIMEOUT, read(egress, url)).await;
        let failed = |reason: String| DocumentError {
            url: haft_core::problem::excerpt(url.as_str(), 200),
            reason: haft_core::problem::excerpt(&reason, 300),
        };
        let (body, lifetime) = fetched
            .unwrap_or_else(|_| Err(format!("request timeout ({} s) exceeded", TIMEOUT.as_secs())))
            .map_err(failed)?;
        let metadata =
            ClientMetadata::from_document(url.as_str(), &body).map_err(|error| failed(error.to_string()))?;
        let metadata = Arc::new(metadata);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_DOCUMENTS {
            kept.retain(|_, kept| now < kept.until);
        }
        if kept.len() >= MAX_DOCUMENTS {
            kept.clear();
        }
        let until = now + lifetime;
        kept.insert(url.to_string(), Kept { metadata: Arc::clone(&metadata), until });
        Ok(metadata)
    }
}

/// Returns the document and how long it may be kept.
async fn read(egress: &Egress, url: &Url) -> Result<(Vec<u8>, Duration), String> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let request = OutgoingRequest {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: None,
        accepted_statuses: REDIRECTS.to_vec(),
    };
    let response = egress.send(request).await.map_err(|error| match error {
        SendError::Denied(denied) => denied.to_string(),
        SendError::Connect(reason) | SendError::Disconnected(reason) | SendError::Redirect(reason) => reason,
    })?;
    if response.status() != StatusCode::OK {
        return Err(format!("status {}; expected 200, without a redirect", response.status().as_u16()));
    }
    let lifetime = lifetime(response.headers());
    let mut body = Vec::new();
    let mut stream = response.bytes_stream();
    while let Some(chunk) = stream.next().await {
        let chunk = chunk.map_err(|_| "incomplete response".to_owned())?;
        if body.len() + chunk.len() > MAX_BYTES {
            return Err(format!("size limit ({MAX_BYTES} bytes) exceeded"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((body, lifetime))
}

/// Returns how long a document may be kept, by its cache headers.
fn lifetime(headers: &HeaderMap) -> Duration {
    let text = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut directives = text.split(',').map(|part| part.trim().to_ascii_lowercase());
    let seconds = directives.find_map(|directive| match directive.as_str() {
        "no-store" | "no-cache" => Some(0),
        other => other.strip_prefix("max-age=")?.trim_matches('"').parse().ok(),
    });
    seconds.map_or(DEFAULT_KEPT, Duration::from_secs).clamp(MIN_KEPT, MAX_KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_headers_are_followed_within_limits() {
        for (header, expected) in [
            ("", DEFAULT_KEPT),
            ("public", DEFAULT_KEPT),
            ("no-store", MIN_KEPT),
            ("max-age=0", MIN_KEPT),
            ("public, Max-Age=7200", Duration::from_hours(2)),
            ("max-age=99999999", MAX_KEPT),
            ("max-age=-1", DEFAULT_KEPT),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CACHE_CONTROL, HeaderValue::from_str(header).unwrap());
            assert_eq!(lifetime(&headers), expected, "{header}");
        }
    }
}
