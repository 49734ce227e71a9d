//! Fetches documents through the egress guard, bounded in time and size.

use std::time::Duration;

use haft_core::outcome::ErrorCode;
use haft_core::problem::excerpt;
use haft_executors::egress::{OutgoingRequest, SendError};
use http::{HeaderMap, HeaderValue, Method, header};
use url::Url;

use crate::context::Context;
use crate::error::ServiceError;

/// How long fetching a document may take.
const FETCH_TIMEOUT: Duration = Duration::from_mins(1);

/// Fetches a document; returns its text and its final URL, which relative server URLs are resolved against.
pub async fn fetch_document(app: &Context, url: &str) -> Result<(String, String), ServiceError> {
    let limit = app.settings().import.max_document_bytes;
    let exceeded = format!("the document exceeds the limit of {limit} bytes (`import.max_document_bytes`)");
    let (bytes, final_url) = fetch_bytes(app, url, limit, &exceeded).await?;
    let text =
        String::from_utf8(bytes).map_err(|_| ServiceError::bad_request("the document is not valid UTF-8"))?;
    Ok((text, final_url))
}

/// Fetches a file of limited size; returns it and its final URL. `exceeded` is the message if it is larger.
pub async fn fetch_bytes(
    app: &Context,
    url: &str,
    limit: usize,
    exceeded: &str,
) -> Result<(Vec<u8>, String), ServiceError> {
    let shown = excerpt(url, 200);
    let url = Url::parse(url)
        .map_err(|error| ServiceError::bad_request(format!("invalid URL `{shown}`: {error}")))?;
    tokio::time::timeout(FETCH_TIMEOUT, fetch(app, url, limit, exceeded))
        .await
        .map_err(|_| ServiceError::bad_request(format!("timeout: `{shown}` was not fetched within 60 s")))?
        .map_err(|error| ServiceError {
            message: format!("cannot fetch `{shown}`: {}", error.message),
            ..error
        })
}

async fn fetch(
    app: &Context,
    url: Url,
    limit: usize,
    exceeded: &str,
) -> Result<(Vec<u8>, String), ServiceError> {
    let accept = HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");
    let headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
    let request =
        OutgoingRequest { method: Method::GET, url, headers, body: None, accepted_statuses: Vec::new() };
    let mut response =
        app.egress().send(request).await.map_err(|error| ServiceError::bad_request(describe(error)))?;
    if !response.status().is_success() {
        return Err(ServiceError::bad_request(format!(
            "the server responded with status {}",
            response.status()
        )));
    }
    let url = response.url().to_string();
    let mut bytes = Vec::new();
    let broken = |_| ServiceError::bad_request("the connection was closed early");
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if bytes.len() + chunk.len() > limit {
            return Err(ServiceError::new(ErrorCode::TooLarge, exceeded));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok((bytes, url))
}

fn describe(error: SendError) -> String {
    match error {
        SendError::Denied(denied) => denied.to_string(),
        SendError::Connect(reason) => format!("cannot connect: {reason}"),
        SendError::Disconnected(reason) | SendError::Redirect(reason) => reason,
    }
}
