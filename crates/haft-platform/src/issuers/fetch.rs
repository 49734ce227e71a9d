//! Requests to an issuer: through its egress guard, with limits of size and time, and without redirects.

use std::time::Duration;

use futures_util::StreamExt as _;
use haft_core::secret::Secret;
use haft_executors::egress::{Egress, OutgoingRequest, SendError};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use url::Url;

use super::error::IssuerError;

/// The timeout of a request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Redirects, which are returned instead of followed: documents of an issuer are where it says.
const REDIRECTS: [u16; 5] = [301, 302, 303, 307, 308];

/// A response.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

/// Fetches a JSON document; with a bearer token if there is one.
pub(super) async fn get(
    egress: &Egress,
    url: &Url,
    token: Option<&Secret>,
    max_bytes: usize,
) -> Result<Vec<u8>, IssuerError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    if let Some(token) = token {
        authorize(&mut headers, &Secret::new(format!("Bearer {}", token.expose())))?;
    }
    let request = OutgoingRequest {
        method: Method::GET,
        url: url.clone(),
        headers,
        body: None,
        accepted_statuses: REDIRECTS.to_vec(),
    };
    let answer = send(egress, request, max_bytes).await?;
    if answer.status.is_success() {
        return Ok(answer.body);
    }
    Err(IssuerError::Status { path: url.path().to_owned(), status: answer.status.as_u16() })
}

/// Sends a form.
pub(super) async fn post_form(
    egress: &Egress,
    url: &Url,
    form: String,
    authorization: Option<&Secret>,
    max_bytes: usize,
) -> Result<Answer, IssuerError> {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    if let Some(value) = authorization {
        authorize(&mut headers, value)?;
    }
    let request = OutgoingRequest {
        method: Method::POST,
        url: url.clone(),
        headers,
        body: Some(form.into()),
        accepted_statuses: REDIRECTS.to_vec(),
    };
    send(egress, request, max_bytes).await
}

fn authorize(headers: &mut HeaderMap, secret: &Secret) -> Result<(), IssuerError> {
    let mut value = HeaderValue::from_str(secret.expose()).map_err(|_| {
        IssuerError::Invalid("a credential has characters that are invalid in a header".to_owned())
    })?;
    value.set_sensitive(true);
    headers.insert(AUTHORIZATION, value);
    Ok(())
}

async fn send(egress: &Egress, request: OutgoingRequest, max_bytes: usize) -> Result<Answer, IssuerError> {
    let exchange = async {
        let response = egress.send(request).await.map_err(|error| IssuerError::Unreachable(shown(&error)))?;
        let status = response.status();
        let mut body = Vec::new();
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            let chunk = chunk.map_err(|_| IssuerError::Unreachable("incomplete response".to_owned()))?;
            if body.len() + chunk.len() > max_bytes {
                return Err(IssuerError::Invalid(format!(
                    "response size limit ({max_bytes} bytes) exceeded"
                )));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Answer { status, body })
    };
    tokio::time::timeout(REQUEST_TIMEOUT, exchange).await.unwrap_or_else(|_| {
        let reason = format!("request timeout ({} s) exceeded", REQUEST_TIMEOUT.as_secs());
        Err(IssuerError::Unreachable(reason))
    })
}

fn shown(error: &SendError) -> String {
    match error {
        SendError::Denied(denied) => match denied.special_address() {
            // The guard's own message names the setting for tools.
            Some(reason) => format!("{reason}: add it to `private_hosts` of the issuer to allow it"),
            None => denied.to_string(),
        },
        SendError::Connect(reason) => format!("cannot connect: {reason}"),
        SendError::Disconnected(reason) => format!("lost the connection: {reason}"),
        SendError::Redirect(reason) => reason.clone(),
    }
}
