//! Requests to authorisation servers: through the guard, bounded in size and time.

use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::problem::excerpt;
use haft_core::secret::{Secret, scrub_text};
use haft_runtime::egress::{Egress, OutgoingRequest};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::Value;
use url::Url;

use super::error::OAuthError;

/// How long one answer may take.
const WITHIN: Duration = Duration::from_secs(15);
/// The largest answer.
const MAX_SIZE: usize = 256 * 1024;
/// The most that is shown of a reason.
const SHOWN: usize = 300;
/// What only a page that was asked for may do.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// What is sent to an address that takes things.
pub(super) struct Sent<'a> {
    pub(super) url: &'a Url,
    pub(super) content_type: &'static str,
    pub(super) body: String,
    /// The `Authorization` header.
    pub(super) authorization: Option<Secret>,
    /// What must not be seen in an error.
    pub(super) hidden: Vec<Secret>,
}

/// Reads a document; nothing where there is none.
pub(super) async fn document(egress: &Egress, url: &Url) -> Result<Option<Value>, OAuthError> {
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
    let (status, body) = answer(egress, url, request).await?;
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        let (address, status) = (shown(url), status.as_u16());
        return Err(OAuthError::Refused { address, status, why: String::new() });
    }
    if !status.is_success() {
        return Ok(None);
    }
    // Many sites answer every address with a page.
    Ok(serde_json::from_slice(&body).ok().filter(Value::is_object))
}

/// Sends something and returns the object that is answered.
pub(super) async fn send(egress: &Egress, sent: Sent<'_>) -> Result<Value, OAuthError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(sent.content_type));
    if let Some(secret) = &sent.authorization {
        let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| {
            OAuthError::Configuration("the client has characters that HTTP does not allow".to_owned())
        })?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    let request = OutgoingRequest {
        method: Method::POST,
        url: sent.url.clone(),
        headers,
        body: Some(sent.body.into()),
        // What is sent is for this address alone.
        accepted_statuses: REDIRECTS.to_vec(),
    };
    let (status, body) = answer(egress, sent.url, request).await?;
    let address = shown(sent.url);
    let value: Value = serde_json::from_slice(&body).unwrap_or_default();
    if !status.is_success() {
        let part = |name| value.get(name).and_then(Value::as_str);
        let parts: Vec<_> = [part("error"), part("error_description")].into_iter().flatten().collect();
        let mut why = parts.join(": ");
        scrub_text(&mut why, &sent.hidden);
        return Err(OAuthError::Refused { address, status: status.as_u16(), why: excerpt(&why, SHOWN) });
    }
    if !value.is_object() {
        return Err(OAuthError::Metadata(format!(
            "{address} answered with something that is no JSON object"
        )));
    }
    Ok(value)
}

async fn answer(
    egress: &Egress,
    url: &Url,
    request: OutgoingRequest,
) -> Result<(StatusCode, Vec<u8>), OAuthError> {
    let asked = async {
        let response = egress.send(request).await.map_err(|error| OAuthError::unsent(&shown(url), error))?;
        let status = response.status();
        let unreachable = |why: String| OAuthError::Unreachable { address: shown(url), why };
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| unreachable("the answer broke off".to_owned()))?;
            if body.len() + chunk.len() > MAX_SIZE {
                return Err(unreachable(format!("the answer has more than {MAX_SIZE} bytes")));
            }
            body.extend_from_slice(&chunk);
        }
        Ok((status, body))
    };
    tokio::time::timeout(WITHIN, asked).await.unwrap_or_else(|_| {
        let why = format!("no answer within {} seconds", WITHIN.as_secs());
        Err(OAuthError::Unreachable { address: shown(url), why })
    })
}

/// An address as people read it: a query may hold anything.
pub(super) fn shown(url: &Url) -> String {
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    excerpt(url.as_str(), 200)
}
