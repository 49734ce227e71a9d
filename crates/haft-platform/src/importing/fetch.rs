//! Fetches documents through the egress guard, bounded in time and size.

use std::time::Duration;

use bytes::Bytes;
use haft_core::outcome::ErrorCode;
use haft_core::problem::{excerpt, join};
use haft_executors::egress::{OutgoingRequest, SendError};
use haft_import::api::files_document;
use haft_import::graphql::INTROSPECTION;
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
    Ok((document_text(bytes).await?, final_url))
}

/// Returns the text of a document; a ZIP archive of a collection becomes a document of its files.
pub async fn document_text(bytes: Vec<u8>) -> Result<String, ServiceError> {
    if !bytes.starts_with(b"PK\x03\x04") {
        return String::from_utf8(bytes)
            .map_err(|_| ServiceError::bad_request("the document is not valid UTF-8"));
    }
    let unpacking = tokio::task::spawn_blocking(move || haft_package::zip::read(&bytes)).await;
    let unpacked = unpacking.map_err(|error| {
        tracing::error!(%error, "unpacking an archive failed");
        ServiceError::new(
            ErrorCode::Internal,
            "internal error while unpacking the archive; see the server log",
        )
    })?;
    let files = unpacked.map_err(|problems| ServiceError::bad_request(join(&problems)))?;
    Ok(files_document(files.iter().map(|(path, file)| (path.as_str(), file.bytes.as_ref()))))
}

/// Asks a GraphQL server for its schema; returns the response and the final URL.
pub async fn introspect(app: &Context, url: &str) -> Result<(String, String), ServiceError> {
    let limit = app.settings().import.max_document_bytes;
    let exceeded = format!("the schema exceeds the limit of {limit} bytes (`import.max_document_bytes`)");
    let body = serde_json::json!({"query": INTROSPECTION, "operationName": "IntrospectionQuery"});
    let (bytes, final_url) =
        exchange(app, url, (Method::POST, Some(body.to_string().into())), (limit, &exceeded)).await?;
    Ok((document_text(bytes).await?, final_url))
}

/// Fetches a file of limited size; returns it and its final URL. `exceeded` is the message if it is larger.
pub async fn fetch_bytes(
    app: &Context,
    url: &str,
    limit: usize,
    exceeded: &str,
) -> Result<(Vec<u8>, String), ServiceError> {
    exchange(app, url, (Method::GET, None), (limit, exceeded)).await
}

async fn exchange(
    app: &Context,
    url: &str,
    request: (Method, Option<Bytes>),
    limit: (usize, &str),
) -> Result<(Vec<u8>, String), ServiceError> {
    let shown = excerpt(url, 200);
    let url = Url::parse(url)
        .map_err(|error| ServiceError::bad_request(format!("invalid URL `{shown}`: {error}")))?;
    tokio::time::timeout(FETCH_TIMEOUT, fetch(app, url, request, limit))
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
    (method, body): (Method, Option<Bytes>),
    (limit, exceeded): (usize, &str),
) -> Result<(Vec<u8>, String), ServiceError> {
    let accept = HeaderValue::from_static("application/json, application/yaml;q=0.9, */*;q=0.5");
    let mut headers = HeaderMap::from_iter([(header::ACCEPT, accept)]);
    if body.is_some() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let request = OutgoingRequest { method, url, headers, body, accepted_statuses: Vec::new() };
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
