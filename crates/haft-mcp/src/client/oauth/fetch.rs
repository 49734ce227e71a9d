//! Requests to authorization servers: through the egress guard, with limits of size and time.

use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::problem::excerpt;
use haft_core::secret::{Secret, scrub_text};
use haft_executors::egress::{Egress, OutgoingRequest};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;
use url::Url;

use super::error::OAuthError;

/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);
/// The size limit of a response.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;
/// How many characters of a reason are shown.
const MAX_EXCERPT: usize = 300;
/// Redirects, which are not followed for a POST.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// A POST request.
pub(super) struct PostRequest<'a> {
    pub(super) url: &'a Url,
    pub(super) content_type: &'static str,
    pub(super) body: String,
    /// The `Authorization` header.
    pub(super) authorization: Option<Secret>,
    /// Secrets to remove from errors.
    pub(super) hidden: Vec<Secret>,
}

/// Fetches a JSON document; `None` where there is none.
pub(super) async fn get_document(egress: &Egress, url: &Url) -> Result<Option<Value>, OAuthError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(
        HeaderName::from_static("mcp-protocol-version"),
        HeaderValue::from_static(super::super::NEWEST_PROTOCOL),
    );
    let request = OutgoingRequest {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: None,
        accepted_statuses: Vec::new(),
    };
    let (status, body) = fetch(egress, url, request).await?;
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let (address, status) = (display_url(url), status.as_u16());
        return Err(OAuthError::Refused { address, status, why: String::new() });
    }
    if !status.is_success() {
        return Ok(None);
    }
    // Many sites return an HTML page for every address.
    Ok(serde_json::from_slice(&body).ok().filter(Value::is_object))
}

/// Sends a POST request and returns the JSON object of the response.
pub(super) async fn post(egress: &Egress, request: PostRequest<'_>) -> Result<Value, OAuthError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
    if let Some(secret) = &request.authorization {
        let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| {
            OAuthError::Configuration(
                "the client id or secret contains characters that are invalid in a header".to_owned(),
            )
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let outgoing = OutgoingRequest {
        method: Method::POST,
        url: request.url.clone(),
        headers,
        body: Some(request.body.into()),
        // The body contains secrets for this address only.
        accepted_statuses: REDIRECTS.to_vec(),
    };
    let (status, body) = fetch(egress, request.url, outgoing).await?;
    let address = display_url(request.url);
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !status.is_success() {
        let part = |name| value.get(name).and_then(Value::as_str);
        let parts: Vec<_> = [part("error"), part("error_description")].into_iter().flatten().collect();
        let mut why = parts.join(": ");
        scrub_text(&mut why, &request.hidden);
        return Err(OAuthError::Refused {
            address,
            status: status.as_u16(),
            why: excerpt(&why, MAX_EXCERPT),
        });
    }
    if !value.is_object() {
        return Err(OAuthError::Metadata(format!("{address} did not return a JSON object")));
    }
    Ok(value)
}

async fn fetch(
    egress: &Egress,
    url: &Url,
    request: OutgoingRequest,
) -> Result<(StatusCode, Vec<u8>), OAuthError> {
    let response = async {
        let response =
            egress.send(request).await.map_err(|error| OAuthError::not_sent(&display_url(url), &error))?;
        let status = response.status();
        let unreachable = |why: String| OAuthError::Unreachable { address: display_url(url), why };
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| unreachable("incomplete response".to_owned()))?;
            if body.len() + chunk.len() > MAX_RESPONSE_BYTES {
                return Err(unreachable(format!(
                    "response size limit ({MAX_RESPONSE_BYTES} bytes) exceeded"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, body))
    };
    tokio::time::timeout(REQUEST_TIMEOUT, response).await.unwrap_or_else(|_| {
        let why = format!("request timeout ({} s) exceeded", REQUEST_TIMEOUT.as_secs());
        Err(OAuthError::Unreachable { address: display_url(url), why })
    })
}

/// Returns a URL for messages, without its query, which may contain secrets.
pub(super) fn display_url(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    excerpt(url.as_str(), 200)
}
